"""infill, mutate, score, and sample with a prefix or a reward: output, and one line per mistake."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import indel
from indel.cli import run
from indel.levenshtein import edit_distance
from support.denoisers import tiny_denoiser

REWARDS = """
import math

def shortness(texts):
    return [-len(text) for text in texts]

def nothing(texts):
    return [math.nan for _ in texts]

def failing(texts):
    raise KeyError("no such word")

number = 3
"""


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("model")
    tiny_denoiser(indel.Schedule.paper(4, 6, 0.5), seed=1, max_length=16).save_pretrained(folder)
    return folder


@pytest.fixture(autouse=True)
def rewards(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "my_rewards.py").write_text(REWARDS)
    (tmp_path / "broken_rewards.py").write_text("import no_such_module_at_all")
    (tmp_path / "new.txt").write_text("0 1 2\n3 3\n")
    (tmp_path / "old.txt").write_text("0 2\n3 1\n")
    (tmp_path / "longer.txt").write_text("0 2\n3 1\n0\n")
    (tmp_path / "empty.txt").write_text("")
    (tmp_path / "strange.txt").write_text("0 x\n1\n")
    monkeypatch.chdir(tmp_path)


def lines(capsys: pytest.CaptureFixture[str], *arguments: str) -> list[str]:
    assert run(list(arguments)) == 0
    return capsys.readouterr().out.splitlines()


def test_infill_prints_what_python_gives(model: Path, capsys) -> None:
    pattern = "1 {2,4} 3 {} 0"
    shown = lines(capsys, "infill", str(model), pattern, "-n", "4", "--seed", "3")
    assert shown == indel.infill(indel.load(model), pattern, 4, seed=3).texts
    assert shown == lines(
        capsys, "infill", str(model), pattern, "-n", "4", "--seed", "3", "--batch-size", "3"
    )
    found = lines(capsys, "infill", str(model), pattern, "-n", "4", "--particles", "3", "--json")
    for record in map(json.loads, found):
        assert record["ids"] == [int(word) for word in record["text"].split()]
        assert 2 <= len(record["gaps"][0].split()) <= 4
        assert len(record["effective_particles"]) == len(record["resampled"]) == 7
        assert record["log_normalizer"] < 0


def test_prefixes_and_suffixes_stay(model: Path, capsys) -> None:
    shown = lines(capsys, "sample", str(model), "--prefix", "1 2 ", "--suffix", " 3", "-n", "6")
    assert all(line.startswith("1 2 ") and line.endswith(" 3") for line in shown)
    both = lines(
        capsys,
        *("sample", str(model), "--prefix", "1 2", "-n", "2", "--particles", "2", "--json"),
        *("--correct", "1"),
    )
    assert all(json.loads(line)["ids"][:2] == [1, 2] for line in both)


def test_a_reward_steers(model: Path, capsys) -> None:
    arguments = ["sample", str(model), "--reward", "my_rewards:shortness", "-n", "8"]
    found = [json.loads(line) for line in lines(capsys, *arguments, "--json", "--strength", "2")]
    assert all(record["reward"] == -len(record["text"]) for record in found)
    assert all(record["unguided_reward"] == -len(record["unguided"]) for record in found)
    total = sum(record["reward"] for record in found)
    assert total > sum(record["unguided_reward"] for record in found)
    plain = lines(capsys, *arguments, "--strength", "2", "--particles", "16")
    assert plain == [record["text"] for record in found]


def test_mutate_prints_texts_within_the_distance(model: Path, capsys) -> None:
    text = "0 1 2 3 3 2"
    arguments = ["mutate", str(model), text, "--edits", "1-3", "--keep", "1-3", "-n", "3"]
    found = [json.loads(line) for line in lines(capsys, *arguments, "--json")]
    for record in found:
        assert record["edits"] == edit_distance([0, 1, 2, 3, 3, 2], record["ids"])
        assert 1 <= record["edits"] <= 3
        assert "1 2" in record["text"]
    assert lines(capsys, *arguments) == [record["text"] for record in found]
    assert run(["mutate", str(model), text, "--edits", "2", "-n", "1"]) == 0


def test_score_prints_a_table_and_json(model: Path, capsys) -> None:
    arguments = ["score", str(model), "new.txt", "--reference", "old.txt", "--chains", "3"]
    shown = "\n".join(lines(capsys, *arguments))
    assert "difference" in shown
    assert "±" in shown
    found = [json.loads(line) for line in lines(capsys, *arguments, "--json")]
    assert [record["reference"] for record in found] == ["0 2", "3 1"]
    assert found[0]["alignment"]["source"] == [0, -1, 1]
    assert found[0]["alignment"]["drawn"] == "0(+1)2"
    for record in found:
        parts = [record[name]["mean"] for name in ("nats", "reference_nats", "difference")]
        assert parts[2] == pytest.approx(parts[0] - parts[1])


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["infill", "{model}", "1 {{ {{}} }}"], "is no gap"),
        (["infill", "{model}", "1 2"], "no gap to fill"),
        (["infill", "{model}", "1 {{17}}"], "at most 16"),
        (["infill", "{model}", "1 7 {{}}"], "integer 7"),
        (["infill", "{model}", "1 {{4,2}}"], "{4,2}"),
        (["infill", "{model}", "1 {{}}", "--particles", "0"], "0"),
        (["infill", "text8", "Paris {{}}"], "'P'"),
        (["sample", "{model}", "--prefix", "x"], "'x'"),
        (["sample", "{model}", "--prefix", "1", "--calls", "2"], "--calls"),
        (["sample", "{model}", "--reward", "my_rewards"], "MODULE:FUNCTION"),
        (["sample", "{model}", "--reward", "no_such_rewards:f"], "no_such_rewards"),
        (["sample", "{model}", "--reward", "broken_rewards:f"], "no_such_module_at_all"),
        (["sample", "{model}", "--reward", "my_rewards:number"], "no function 'number'"),
        (["sample", "{model}", "--reward", "my_rewards:nothing"], "got nan"),
        (["sample", "{model}", "--reward", "my_rewards:failing"], "no such word"),
        (
            ["sample", "{model}", "--reward", "my_rewards:shortness", "--particles", "1"],
            "at least 2",
        ),
        (["sample", "{model}", "--reward", "my_rewards:shortness", "--strength", "nan"], "nan"),
        (["mutate", "{model}", "1 2 3", "--edits", "6-3"], "6-3"),
        (["mutate", "{model}", "1 2 3", "--edits", "x"], "'x'"),
        (["mutate", "{model}", "1 2 3", "--keep", "2-9"], "2-9"),
        (["mutate", "{model}", "1 2 3", "--keep", "2"], "'2'"),
        (["mutate", "{model}", "1 x 3"], "'x'"),
        (["score", "{model}", "new.txt", "--reference", "longer.txt"], "longer.txt has 3"),
        (["score", "{model}", "empty.txt", "--reference", "old.txt"], "no line"),
        (["score", "{model}", "strange.txt", "--reference", "old.txt"], "strange.txt, line 1"),
        (["score", "{model}", "no-such.txt", "--reference", "old.txt"], "no-such.txt"),
    ],
)
def test_a_mistake_is_one_line_and_code_2(
    model: Path, capsys, arguments: list[str], says: str
) -> None:
    code = run([argument.format(model=model) for argument in arguments])
    shown = capsys.readouterr().err
    assert code == 2, shown
    assert says in shown
    assert len(shown.strip().splitlines()) == 1
    assert "Traceback" not in shown
