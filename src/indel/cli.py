"""The command `indel`.

What a command needs is imported when it runs: `indel --help` must not wait for torch.
"""

from __future__ import annotations

import io
import sys
from collections.abc import Callable, Sequence
from typing import Annotated, Any

import typer

from indel import __version__
from indel.commands import (
    corruption,
    exporting,
    models,
    repair_benchmark,
    repairing,
    reproducing,
    serving,
    training,
)
from indel.extras import MissingExtraError

BAD_INPUT = 2

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@app.callback(invoke_without_command=True)
def start(
    version: Annotated[bool, typer.Option("--version", help="Show the version and exit.")] = False,
) -> None:
    """Diffusion over sequences that can insert, delete and replace tokens."""
    if version:
        print(f"indel {__version__}")
        raise typer.Exit()


for command in (
    repairing.repair,
    repair_benchmark.evaluate_repair,
    corruption.corrupt,
    training.train,
    models.sample,
    models.evaluate,
    training.info,
    exporting.export,
    reproducing.reproduce,
    serving.serve,
):
    app.command()(command)


def run(arguments: Sequence[str]) -> int:
    """Run a command and return its exit code; bad input is one line on stderr and code 2."""
    try:
        return app(arguments or ["--help"], prog_name="indel", standalone_mode=False) or 0
    except typer.TyperException as error:
        return _complain(_reason(error), error.exit_code)
    except (ValueError, OSError, MissingExtraError) as error:
        return _complain(str(error), BAD_INPUT)


def main() -> None:
    """The entry point."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        # An encoding that lacks a sign is no reason to fail.
        sys.stdout.reconfigure(errors="replace")
    sys.exit(run(sys.argv[1:]))


def _reason(error: typer.TyperException) -> str:
    """Typer's message, completed by the value that is wrong."""
    message = error.format_message().replace("Value error, ", "")
    # Typer checks values with pydantic, whose error knows the value but whose message may not.
    details: Callable[[], list[dict[str, Any]]] | None = getattr(error.__cause__, "errors", None)
    if details is None or (value := repr(details()[0]["input"])) in message:
        return message
    return f"{message}, got {value}"


def _complain(message: str, code: int) -> int:
    print("indel:", message.replace("\n", " "), file=sys.stderr)
    return code


if __name__ == "__main__":
    main()
