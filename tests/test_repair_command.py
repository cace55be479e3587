"""`indel repair` and `indel evaluate-repair`: bytes in, bytes out, and one line for a mistake."""

import io
import json
import re
import shutil
import sys
from pathlib import Path

import pytest

from indel.cli import run
from indel.text_repair.known_words import KnownWords
from support.denoisers import letter_denoiser

TEXT = "Thsi sentsnetne wasstype vssry babdly, at 10:30."
BOLD = ["--strength", "6", "--draws", "3", "--agreement", "0.01"]
CAREFUL = ["--strength", "2", "--draws", "2", "--agreement", "1"]
Captured = pytest.CaptureFixture[bytes]


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    folder = tmp_path_factory.mktemp("models")
    for name, rate in (("indel", 0.6), ("in-place", 0.0)):
        letter_denoiser(rate=rate).save_pretrained(folder / name)
    return {name: str(folder / name) for name in ("indel", "in-place")}


@pytest.fixture(scope="module")
def model(models: dict[str, str]) -> str:
    return models["indel"]


def give(monkeypatch: pytest.MonkeyPatch, content: bytes) -> None:
    """Put bytes on standard input."""
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))


def held(content: bytes) -> bytes:
    return re.sub(rb"[A-Za-z ]", b"", content)


def test_in_a_pipe_there_is_the_mended_text_alone(model: str, capsysbinary: Captured) -> None:
    assert run(["repair", TEXT, "--model", model, *BOLD]) == 0
    shown = capsysbinary.readouterr().out
    assert shown.endswith(b"\n")
    assert shown[:-1] != TEXT.encode()
    assert held(shown) == held(TEXT.encode()) + b"\n"


HOSTILE = {
    "empty": b"",
    "one letter": b"x",
    "no line end": b"so it ends",
    "lines": b"a line\r\nanother\rone\n\n\n\tindented  \n",
    "invalid utf-8": b"caf\xe9 \xff\xfe teh \xc3",
    "utf-8 of a surrogate": b"a \xed\xa0\x80 b",
    "controls": bytes(range(32)) + b" word \x7f\x1b[31m",
    "other scripts": "Привет, 世界! שלום 😀👩‍👧 e\u0301".encode(),
    "a byte order mark": b"\xef\xbb\xbfhello",
    "a huge word": b"x" * 200_000,
    "a megabyte of nothing": b"\0" * 1_000_000,
}


@pytest.mark.parametrize("content", HOSTILE.values(), ids=HOSTILE)
def test_no_byte_is_lost(
    model: str,
    content: bytes,
    capsysbinary: Captured,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    give(monkeypatch, content)
    assert run(["repair", "--model", model, *CAREFUL]) == 0
    piped = capsysbinary.readouterr().out
    assert held(piped) == held(content)
    source, target = tmp_path / "in.txt", tmp_path / "out.txt"
    source.write_bytes(content)
    options = ["--file", str(source), "--out", str(target), "--model", model, *CAREFUL]
    assert run(["repair", *options]) == 0
    assert target.read_bytes() == piped
    assert capsysbinary.readouterr().out == b""


def test_a_file_that_is_repaired_in_place_keeps_its_permissions(model: str, tmp_path: Path) -> None:
    private = tmp_path / "letter.txt"
    private.write_text(TEXT)
    private.chmod(0o600)
    options = ["--file", str(private), "--out", str(private), "--model", model]
    assert run(["repair", *options, *BOLD]) == 0
    assert private.read_text() != TEXT
    assert private.stat().st_mode & 0o777 == 0o600


def test_standard_input_by_its_sign(
    model: str, capsysbinary: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown = []
    for arguments in (["-"], ["--file", "-"], []):
        give(monkeypatch, TEXT.encode())
        assert run(["repair", *arguments, "--model", model, *BOLD]) == 0
        shown.append(capsysbinary.readouterr().out)
    assert shown[0] == shown[1] == shown[2]
    assert shown[0] != TEXT.encode()


def test_json(model: str, capsysbinary: Captured, monkeypatch: pytest.MonkeyPatch) -> None:
    give(monkeypatch, TEXT.encode() + b"\xff")
    assert run(["repair", "--model", model, "--json", *BOLD]) == 0
    found = json.loads(capsysbinary.readouterr().out)["repair"]
    assert found["original"] == TEXT + "\udcff"
    assert len(found["draws"]) == 3
    text = found["original"]
    for each in reversed(found["corrections"]):
        assert text[each["start"] : each["end"]] == each["before"]
        text = text[: each["start"]] + each["choices"][0]["text"] + text[each["end"] :]
    assert found["corrections"]
    assert text == found["text"]


def test_the_seed_decides(model: str, capsysbinary: Captured) -> None:
    def shown(seed: str) -> bytes:
        assert run(["repair", TEXT, "--model", model, "--seed", seed, *BOLD]) == 0
        return capsysbinary.readouterr().out

    first = shown("1")
    assert first == shown("1")
    assert first != shown("2")


def test_a_diff_is_readable_without_colour(model: str, capsysbinary: Captured) -> None:
    assert run(["repair", TEXT, "--model", model, "--diff", *BOLD]) == 0
    shown = capsysbinary.readouterr().out.decode()
    first = shown.splitlines()[0]
    assert "\x1b" not in shown
    assert re.sub(r"\[-(.*?)-\]\{\+.*?\+\}", r"\1", first) == TEXT
    assert run(["repair", TEXT, "--model", model, "--plain", *BOLD]) == 0
    plain = capsysbinary.readouterr().out.decode()
    assert re.sub(r"\[-.*?-\]\{\+(.*?)\+\}", r"\1", first) + "\n" == plain
    assert "Corrections" in shown
    assert "%" in shown


def test_a_diff_in_colour_strikes_out_and_underlines(
    model: str, capsysbinary: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in (("FORCE_COLOR", "1"), ("NO_COLOR", ""), ("TERM", "xterm-256color")):
        monkeypatch.setenv(name, value)
    # With colour forced it is taken to be a terminal, where the diff is the default.
    assert run(["repair", TEXT + "\x1b[5m", "--model", model, *BOLD]) == 0
    shown = capsysbinary.readouterr().out.decode()
    assert "\x1b[9;31m" in shown
    assert "\x1b[4;32m" in shown
    assert "[-" not in shown
    assert "\x1b[5m" not in shown
    assert r"\x1b[5m" in shown


def test_words_beside_the_model_are_used_unless_they_are_not_wanted(
    models: dict[str, str], tmp_path: Path, capsysbinary: Captured
) -> None:
    known = tmp_path / "known"
    shutil.copytree(models["indel"], known)
    KnownWords({"letter": 10**12, "better": 10, "the": 5000}).write(known)

    def shown(*options: str) -> bytes:
        arguments = ["repair", "The Lettter!", "--model", str(known), "--strength", "1", *options]
        assert run(arguments) == 0
        return capsysbinary.readouterr().out

    assert shown() == b"The Letter!\n"
    assert shown("--no-words") == b"The Lettter!\n"


def test_the_papers_way(model: str, capsysbinary: Captured) -> None:
    assert run(["repair", TEXT, "--model", model, "--paper", "--draws", "4"]) == 0
    lines = capsysbinary.readouterr().out.decode().splitlines()
    assert len(lines) == 4
    assert len(set(lines)) > 1
    assert all(re.fullmatch("[a-z -]*", line) for line in lines)
    assert run(["repair", TEXT, "--model", model, "--paper", "--draws", "4", "--json"]) == 0
    assert json.loads(capsysbinary.readouterr().out)["draws"] == lines


def test_compare(models: dict[str, str], capsysbinary: Captured) -> None:
    both = [option for name in models.values() for option in ("--model", name)]
    assert run(["repair", "teh cta", "--compare", *both, "--draws", "2"]) == 0
    shown = capsysbinary.readouterr().out.decode()
    assert [line.split()[:2] for line in shown.splitlines() if "draw" in line[:8]] == [
        ["draw", str(number)] for number in range(1, 6)
    ]
    assert "together" in shown
    assert run(["repair", "teh cta", "--compare", *both, "--draws", "2", "--json"]) == 0
    sides = json.loads(capsysbinary.readouterr().out)
    assert [side["model"] for side in sides] == list(models.values())
    assert all(len(side["single_draws"]) == 5 for side in sides)
    # Nothing is inserted or deleted in place.
    assert {len(draw) for draw in sides[1]["single_draws"]} == {len("teh cta")}


def test_out_follows_a_link_and_replaces_no_device(model: str, tmp_path: Path) -> None:
    target, link = tmp_path / "target.txt", tmp_path / "link.txt"
    target.write_text("old")
    link.symlink_to(target)
    assert run(["repair", "a", "--model", model, "--out", str(link), *CAREFUL]) == 0
    assert link.is_symlink()
    assert target.read_text() == "a\n"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["link.txt", "target.txt"]
    assert run(["repair", "a", "--model", model, "--out", "/dev/null", *CAREFUL]) == 2
    assert Path("/dev/null").is_char_device()


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["repair", "a", "--model", "no-such-model"], "no-such-model"),
        (["repair", "a", "--model", "{model}", "--strength", "32"], "1…31, got 32"),
        (["repair", "a", "--model", "{model}", "--strength", "0"], "0"),
        (["repair", "a", "--model", "{model}", "--draws", "-1"], "-1"),
        (["repair", "a", "--model", "{model}", "--agreement", "2"], "got 2.0"),
        (["repair", "a", "--model", "{model}", "--agreement", "most"], "most"),
        (["repair", "a", "--model", "{model}", "--seed", "-1"], "-1"),
        (["repair", "a", "--file", "b"], "not both"),
        (["repair", "--file", "no-such-file.txt"], "no-such-file.txt"),
        (["repair", "--file", "{folder}"], "{folder}"),
        (["repair", "a", "--paper", "--compare"], "--paper"),
        (["repair", "a", "--paper", "--agreement", "0.5"], "--agreement"),
        (["repair", "a", "--json", "--diff"], "--diff"),
        (["repair", "a", "--compare", "--out", "x"], "--json"),
        (["repair", "a", "--model", "x", "--model", "y"], "x, y"),
        (["repair", "a", "--compare", "--model", "x"], "twice"),
        (["repair", "a" * 120, "--paper", "--model", "{model}"], "120"),
        (["repair", "a", "--model", "{model}", "--out", "{folder}"], "{folder}"),
        (["repair", "a", "--model", "{model}", "--out", "{file}/x"], "{file}/x"),
        (["evaluate-repair", "no-such-file.tsv"], "no-such-file.tsv"),
        (["evaluate-repair", "{file}"], "line 1"),
        (["evaluate-repair", "{file}", "--half", "third"], "third"),
        (["evaluate-repair", "{file}", "--limit", "0"], "0"),
    ],
)
def test_a_mistake_is_one_line_and_code_2(
    model: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], says: str
) -> None:
    file = tmp_path / "file.tsv"
    file.write_text("no pair")
    names = {"model": model, "folder": str(tmp_path), "file": str(file)}
    code = run([argument.format(**names) for argument in arguments])
    output, errors = capsys.readouterr()
    assert code == 2, errors
    assert output == ""
    assert says.format(**names) in errors
    assert len(errors.strip().splitlines()) == 1


def test_on_a_terminal_nothing_is_waited_for(
    model: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setattr(sys, "stdin", Terminal())
    assert run(["repair", "--model", model]) == 2
    assert "nothing to repair" in capsys.readouterr().err


def test_evaluate_repair(
    models: dict[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pairs, out = tmp_path / "pairs.tsv", tmp_path / "sentences.jsonl"
    pairs.write_text("i recieve teh mail\ti receive the mail\nall is well\tall is well\n")
    both = [option for name in models.values() for option in ("--model", name)]
    command = ["evaluate-repair", str(pairs), *both, "--draws", "2", "--out", str(out)]
    assert run([*command, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["pairs"] == 2
    rows = found["rows"]
    first, *_ = models.values()
    assert list(rows)[:3] == ["as typed", *models.values()]
    assert {"pyspellchecker", "symspellpy"} <= rows.keys()
    assert rows["as typed"]["wrong characters"] == 4
    assert rows["as typed"]["untouched"] == 1
    assert rows["symspellpy"]["wrong characters"] == 0
    assert rows["symspellpy"]["exact"] == 1
    assert rows[first]["more wrong"] == {"mean": 0, "low": 0, "high": 0}
    sentences = [json.loads(line) for line in out.read_text().splitlines()]
    assert [line["noisy"] for line in sentences] == ["i recieve teh mail", "all is well"]
    for name, row in rows.items():
        assert sum(line["outputs"][name]["wrong"] for line in sentences) == row["wrong characters"]
    assert run([*command, "--no-checkers", "--half", "second"]) == 0
    shown = capsys.readouterr().out
    assert "1 pairs, 11 clean characters" in shown
    assert "as typed" in shown
    assert "symspellpy" not in shown
