"""The command `indel`: what it prints, and what it says about bad input."""

import importlib.metadata
import io
import subprocess
import sys
from itertools import pairwise

import pytest
from typer.testing import CliRunner

from indel import cli, process

COMMAND = [sys.executable, "-c", "from indel.cli import main; main()"]


def shown(*arguments: str, **environment: str) -> str:
    """What the command prints when all is well."""
    result = CliRunner(env={"COLUMNS": "100", **environment}).invoke(cli.app, arguments)
    assert result.exit_code == 0, result.output
    return result.stdout


def chain_rows(output: str, steps: int) -> list[str]:
    """x_0 … x_T as printed."""
    names = [f"x{t}".translate(str.maketrans("0123456789", "₀₁₂₃₄₅₆₇₈₉")) for t in range(steps + 1)]
    lines = output.split("The edits")[0].splitlines()
    return [line.split()[1] for name in names for line in lines if line.split()[:1] == [name]]


def test_it_is_installed_under_its_name() -> None:
    (entry,) = importlib.metadata.entry_points(group="console_scripts", name="indel")
    assert entry.load() is cli.main


def test_version() -> None:
    assert shown("--version") == f"indel {importlib.metadata.version('indel')}\n"


def test_without_a_command_it_lists_them(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run([]) == 0
    assert "corrupt" in capsys.readouterr().out


def test_the_chain_runs_from_the_text_to_nothing_but_deletions() -> None:
    rows = chain_rows(shown("corrupt", "this was typed badly", "--steps", "12"), 12)
    assert rows[0] == "this·was·typed·badly"
    assert len(rows) == 13
    assert set(rows[12]) == {"×"}
    assert len(set(rows)) == 13


def test_the_summary_is_of_the_chosen_step() -> None:
    for at in (0, 3, 8):
        output = shown("corrupt", "some words", "--steps", "8", "--at", str(at))
        above, signs, below = output.split("The edits")[1].splitlines()[2:5]
        assert above.split(maxsplit=1)[1].replace(" ", "") == "some·words"
        assert below.split(maxsplit=1)[1].replace(" ", "") == chain_rows(output, 8)[at]
        assert signs.strip() == "||||||||||" or at > 0


def test_the_summary_is_of_the_middle_by_default() -> None:
    arguments = ("corrupt", "some words", "--steps", "8")
    assert shown(*arguments) == shown(*arguments, "--at", "4")


def test_the_seed_decides() -> None:
    one, same, other = (shown("corrupt", "some words", "--seed", seed) for seed in "112")
    assert one == same
    assert chain_rows(one, 10) != chain_rows(other, 10)


def test_rate_zero_keeps_the_length() -> None:
    rows = chain_rows(shown("corrupt", "some words", "--rate", "0"), 10)
    assert {len(row) for row in rows} == {10}
    assert "×" not in "".join(rows[:10])


def test_absorbing_replacements_are_masks() -> None:
    rows = chain_rows(
        shown("corrupt", "some words", "--rate", "0", "--transition", "absorbing"), 10
    )
    assert rows[9] == "-" * 10
    for row in rows[:10]:
        assert all(z in (x, "-") for x, z in zip("some·words", row, strict=True))


def test_qwerty_replacements_are_slips_of_the_finger() -> None:
    text = "the quick brown fox jumps over the lazy dog"
    rows = chain_rows(shown("corrupt", text, "--rate", "0", "--transition", "qwerty"), 10)
    near = process.qwerty_neighbors()
    slips = {
        (x, z)
        for before, after in pairwise(rows[:10])
        for x, z in zip(before, after, strict=True)
        if x != z
    }
    assert len(slips) > 10
    assert all(z in near[x] for x, z in slips)


def test_normalise() -> None:
    rows = chain_rows(shown("corrupt", "It's 9 o'clock!", "--normalize"), 10)
    assert rows[0] == "it·s·nine·o·clock"


def test_empty_text() -> None:
    assert chain_rows(shown("corrupt", ""), 10)[0] == "(empty)"


def test_align_makes_room_for_what_will_be_inserted() -> None:
    lines = shown("corrupt", "some words", "--align").splitlines()
    (start,) = (line.split("x₀")[1].strip() for line in lines[:3] if "x₀ " in line[:8])
    assert start != "some·words"
    assert start.replace(" ", "") == "some·words"


def test_in_a_pipe_there_are_signs_instead_of_colours() -> None:
    output = shown("corrupt", "some words")
    assert "\x1b" not in output
    lines = output.split("The edits")[0].splitlines()
    marks = [line for line in lines if line.strip() and not line.strip(" ~+")]
    assert len(marks) > 5


def test_in_a_terminal_there_are_colours_instead_of_signs() -> None:
    output = shown("corrupt", "some words", FORCE_COLOR="1", NO_COLOR="", TERM="xterm-256color")
    assert "\x1b[" in output
    drawn = [line for line in output.split("The edits")[0].splitlines() if line.startswith("  ")]
    assert len(drawn) == 11


def test_without_colour_in_a_terminal_there_are_signs() -> None:
    environment = {"FORCE_COLOR": "1", "TERM": "xterm-256color"}
    output = shown("corrupt", "some words", NO_COLOR="1", **environment)
    # 38 and 48 set colours; bold and underline may stay.
    assert ";38;" not in output
    assert "[38;" not in output
    drawn = [line for line in output.split("The edits")[0].splitlines() if line.startswith("  ")]
    assert len(drawn) > 15


def test_it_fits_the_terminal() -> None:
    text = "a sentence that is far too long for a terminal of forty columns"
    output = shown("corrupt", text, "--rate", "1", COLUMNS="40")
    drawn = [line for line in output.splitlines() if line.startswith("   ")]
    assert len(drawn) > 20
    assert max(len(line) for line in output.split("The edits")[0].splitlines()[2:]) <= 40


@pytest.mark.parametrize(
    ("arguments", "value", "right"),
    [
        (["corrupt", "Hello"], "'H' (U+0048) at position 0", "--normalize"),
        (["corrupt", "a", "--rate", "1.5"], "1.5", "less than or equal to 1"),
        (["corrupt", "a", "--rate", "-0.5"], "-0.5", "greater than or equal to 0"),
        (["corrupt", "a", "--rate", "nan"], "nan", "equal to 1"),
        (["corrupt", "a", "--steps", "1"], "1", "greater than or equal to 2"),
        (["corrupt", "a", "--steps", "few"], "few", "integer"),
        (["corrupt", "a", "--at", "11"], "11", "0…10"),
        (["corrupt", "a", "--at", "-1"], "-1", "greater than or equal to 0"),
        (["corrupt", "a", "--seed", str(2**70)], str(2**70), "less than or equal to"),
        (["corrupt", "a", "--transition", "azerty"], "azerty", "'qwerty'"),
        (["corrupt", "a", "--colour"], "--colour", "No such option"),
        (["corrupt"], "TEXT", "Missing"),
        (["corupt", "a"], "'corupt'", "'corrupt'"),
    ],
)
def test_bad_input_is_one_line_that_names_the_value_and_what_is_right(
    arguments: list[str], value: str, right: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.run(arguments) == 2
    output, errors = capsys.readouterr()
    assert output == ""
    assert errors.startswith("indel: ")
    assert errors.endswith("\n")
    assert errors.count("\n") == 1
    assert value in errors
    assert right in errors


@pytest.mark.parametrize(
    ("error", "code", "says"),
    [
        (ValueError("first\nsecond"), 2, "indel: first second\n"),
        (FileNotFoundError(2, "No such file", "x.txt"), 2, "No such file: 'x.txt'\n"),
        (KeyboardInterrupt(), 130, ""),
    ],
)
def test_errors_of_the_library(
    error: BaseException,
    code: int,
    says: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(process, "corrupt_chain", fail)
    assert cli.run(["corrupt", "abc"]) == code
    output, errors = capsys.readouterr()
    assert output == ""
    assert errors.endswith(says)
    assert errors.count("\n") == (1 if says else 0)


def test_a_defect_is_not_disguised_as_bad_input(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(process, "corrupt_chain", fail)
    with pytest.raises(ZeroDivisionError):
        cli.run(["corrupt", "abc"])


def test_an_encoding_without_the_signs_is_no_obstacle(monkeypatch: pytest.MonkeyPatch) -> None:
    written = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(written, encoding="ascii"))
    monkeypatch.setattr(sys, "argv", ["indel", "corrupt", "abc"])
    with pytest.raises(SystemExit) as exit_:
        cli.main()
    assert exit_.value.code == 0
    sys.stdout.flush()
    assert b"  x?  abc\n" in written.getvalue()


def test_as_a_process() -> None:
    done = subprocess.run([*COMMAND, "corrupt", "ÄÖ"], capture_output=True, check=False)
    assert (done.stdout, done.returncode) == (b"", 2)
    assert done.stderr.count(b"\n") == 1
    assert "'Ä' (U+00C4) at position 0" in done.stderr.decode()


@pytest.mark.parametrize(
    ("arguments", "redirected", "says"),
    [
        ("repair", "<&-", "standard input is closed: give a TEXT or --file PATH"),
        ("models", ">&-", "standard output is closed: redirect it"),
        ("models", ">/dev/full", "No space left on device"),
        ("serve --host ''", "", "--host must be an address"),
    ],
)
def test_streams_and_hosts_that_cannot_be_used_are_one_line(
    arguments: str, redirected: str, says: str
) -> None:
    line = f"{sys.executable} -m indel {arguments} {redirected}"
    done = subprocess.run(["sh", "-c", line], capture_output=True, text=True, check=False)
    assert done.returncode == 2, done.stderr
    assert done.stderr.count("\n") == 1
    assert says in done.stderr


@pytest.mark.parametrize(
    ("line", "code", "output"),
    [
        ("{indel} corrupt 'some words' 2>&-", 0, "some·words"),
        ("{indel} corrupt BAD 2>&-", 2, ""),
        ("{indel} models <&- 2>&-", 0, "text8"),
        # The reader has seen enough: no message.
        (
            "{{ {indel} sample arithmetic -n 3 --batch-size 1 --calls 2; echo $? >&2; }} | true",
            0,
            "",
        ),
    ],
)
def test_other_closed_streams_do_no_harm(line: str, code: int, output: str) -> None:
    command = line.format(indel=f"{sys.executable} -m indel")
    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=False)
    assert done.returncode == code
    assert output in done.stdout
    assert done.stderr in ("", "1\n")


def test_too_little_memory_is_bad_input_and_other_failures_are_not(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    message = "DefaultCPUAllocator: can't allocate memory: you tried to allocate 8 bytes"
    for error in (RuntimeError(message), MemoryError()):

        def fail(*_: object, error: Exception = error, **__: object) -> None:
            raise error

        monkeypatch.setattr(process, "corrupt_chain", fail)
        assert cli.run(["corrupt", "abc"]) == 2
        assert "there is not enough memory" in capsys.readouterr().err

    def defect(*_: object, **__: object) -> None:
        raise RuntimeError("shapes differ")

    monkeypatch.setattr(process, "corrupt_chain", defect)
    with pytest.raises(RuntimeError, match="shapes differ"):
        cli.run(["corrupt", "abc"])
