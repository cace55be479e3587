"""The command `indel`.

What a command needs is imported when it runs: `indel --help` must not wait for torch.
"""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Callable, Sequence
from typing import Annotated, Any

import typer

from indel import __version__
from indel.commands import (
    compare,
    corrupt,
    evaluate,
    evaluate_molecules,
    evaluate_repair,
    export,
    infill,
    info,
    list_models,
    mend_molecules,
    mutate,
    push,
    repair,
    reproduce,
    sample,
    score,
    serve,
    train,
    tune_repair,
)
from indel.extras import MissingExtraError

BAD_INPUT = 2
BROKEN_PIPE = 1  # as Typer has it

app = typer.Typer(pretty_exceptions_enable=False)


@app.callback(invoke_without_command=True)
def start(
    version: Annotated[bool, typer.Option("--version", help="Show the version and exit.")] = False,
) -> None:
    """Diffusion over sequences that can insert, delete and replace tokens."""
    if version:
        print(f"indel {__version__}")
        raise typer.Exit()


for command in (
    repair.repair,
    evaluate_repair.evaluate_repair,
    tune_repair.tune_repair,
    corrupt.corrupt,
    train.train,
    sample.sample,
    infill.infill,
    mutate.mutate,
    evaluate.evaluate,
    evaluate_molecules.evaluate_molecules,
    mend_molecules.mend_molecules,
    score.score,
    info.info,
    list_models.models,
    export.export,
    push.push,
    reproduce.reproduce,
    compare.compare,
    serve.serve,
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
    except (MemoryError, RuntimeError) as error:
        if not _is_out_of_memory(error):
            raise
        return _complain(f"there is not enough memory for this: {error}", BAD_INPUT)


def main() -> None:
    """The entry point."""
    _reserve_standard_streams()
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115  # for as long as the program runs
    if sys.stdout is None:
        sys.exit(_complain("standard output is closed: redirect it (> FILE or > /dev/null)", 2))
    if isinstance(sys.stdout, io.TextIOWrapper):
        # An encoding that lacks a sign is no reason to fail.
        sys.stdout.reconfigure(errors="replace")
    code = run(sys.argv[1:])
    try:
        sys.stdout.flush()
    except OSError as error:
        code = code or _unwritten(error)
    sys.exit(code)


def _reserve_standard_streams() -> None:
    """Let no file that is opened later take the number of a stream that is closed."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # the lowest free number: this one


def _unwritten(error: OSError) -> int:
    """Standard output cannot be written: nothing more goes there, not even at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    if isinstance(error, BrokenPipeError):
        return BROKEN_PIPE  # the reader has what it wanted
    return _complain(f"cannot write to standard output: {error.strerror or error}", BAD_INPUT)


def _reason(error: typer.TyperException) -> str:
    """Typer's message, completed by the value that is wrong."""
    message = error.format_message().replace("Value error, ", "")
    # Typer checks values with pydantic, whose error knows the value but whose message may not.
    details: Callable[[], list[dict[str, Any]]] | None = getattr(error.__cause__, "errors", None)
    if details is None or (value := repr(details()[0]["input"])) in message:
        return message
    return f"{message}, got {value}"


def _is_out_of_memory(error: Exception) -> bool:
    """torch has no type of its own for a CPU that has no more memory."""
    signs = ("can't allocate memory", "out of memory", "Storage size calculation overflowed")
    return isinstance(error, MemoryError) or any(sign in str(error) for sign in signs)


def _complain(message: str, code: int) -> int:
    print("indel:", " ".join(message.split()), file=sys.stderr)
    return code


if __name__ == "__main__":
    main()
