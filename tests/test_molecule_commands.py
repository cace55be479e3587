"""The commands for molecules: what they print, and one line for each mistake."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

import indel
from indel.cli import run
from indel.data import MosesSample
from support.molecule_models import ASPIRIN, chain_denoiser, molecule_denoiser


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("model")
    molecule_denoiser().save_pretrained(folder)
    return str(folder)


@pytest.fixture(autouse=True)
def cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    # One for all tests, so that the sample is looked at once.
    monkeypatch.setenv("INDEL_CACHE", str(tmp_path_factory.getbasetemp() / "molecules-cache"))


def printed(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert run(list(arguments)) == 0
    return capsys.readouterr().out


def test_sample_and_infill(model: str, tmp_path: Path, capsys) -> None:
    shown = printed(capsys, "sample", model, "-n", "3").splitlines()
    assert shown == indel.generate(indel.load(model), 3).texts
    picture = tmp_path / "filled.svg"
    pattern = "c1ccc({,3})cc1{,2}"
    arguments = ["infill", model, pattern, "-n", "3"]
    filled = printed(capsys, *arguments, "--draw", str(picture)).splitlines()
    assert all(line.startswith("c1ccc(") and ")cc1" in line for line in filled)
    assert filled == printed(capsys, *arguments).splitlines()
    assert picture.read_text().count("translate") >= 3


def test_mutate_shows_similarity_and_validity(model: str, tmp_path: Path, capsys) -> None:
    picture = tmp_path / "relatives.svg"
    arguments = ["mutate", model, ASPIRIN, "--edits", "1-3", "-n", "6"]
    plain = printed(capsys, *arguments, "--draw", str(picture)).splitlines()
    records = [json.loads(line) for line in printed(capsys, *arguments, "--json").splitlines()]
    for line, record in zip(plain, records, strict=True):
        smiles, _, about = line.partition(" ")
        assert smiles == record["text"]
        assert about.startswith("1 edit," if record["edits"] == 1 else f"{record['edits']} edits,")
        assert about.endswith("not valid") == (not record["valid"])
        assert (record["similarity"] is None) == (not record["valid"])
        if record["valid"]:
            assert f"similarity {record['similarity']:.2f}" in about
    assert picture.read_text().startswith("<svg")


def test_rewards_of_the_package_steer(tmp_path: Path, capsys) -> None:
    chain_denoiser().save_pretrained(tmp_path)
    arguments = ["sample", str(tmp_path), "--reward", "indel.molecules:valid", "-n", "12", "--json"]
    found = printed(capsys, *arguments, "--strength", "8", "--particles", "8")
    records = [json.loads(line) for line in found.splitlines()]
    assert {record["reward"] for record in records} <= {0.0, 1.0}
    after, before = (sum(r[k] for r in records) for k in ("reward", "unguided_reward"))
    assert after > before


def test_mend(model: str, tmp_path: Path, capsys) -> None:
    shown = printed(capsys, "mend-molecules", model, "CCO", "--draws", "4")
    assert shown == "CCO 0 edits, 4 of 4 draws\n"
    file = tmp_path / "broken.smi"
    file.write_text("CC(C name\n\nOCC\n")
    found = printed(capsys, "mend-molecules", model, "--file", str(file), "--json")
    records = [json.loads(line) for line in found.splitlines()]
    assert [record["original"] for record in records] == ["CC(C", "OCC"]
    assert records[0].keys() == {"original", "smiles", "edits", "votes", "t", "draws"}


def test_metrics_of_a_file_beside_the_published_ones(tmp_path: Path, capsys) -> None:
    file = tmp_path / "made.smi"
    molecules = MosesSample().texts("train", 60)
    file.write_text(
        "\n".join([*molecules[:59], f"{molecules[59]} a name", "C1CC", "", "x y", "c1cccc1"]) + "\n"
    )
    shown = printed(capsys, "evaluate-molecules", str(file), "--reference", "40")
    for word in ("unique@10k", "Scaf/TestSF", "CharRNN", "JTN-VAE", "0.9748", "Polykovskiy"):
        assert word in shown
    assert "3 are no molecules: the string is no SMILES." in shown
    found = printed(capsys, "evaluate-molecules", str(file), "--reference", "40", "--json")
    record = json.loads(found)
    assert record["valid"] == 60 / 64
    assert record["faults"] == {"syntax": 3, "aromatic": 1}
    assert record["reference"] == {"Test": 40, "TestSF": 40}
    assert record["Novelty"] == 0.0
    assert record["Scaf/TestSF"] == 0.0


def test_metrics_of_a_model(model: str, tmp_path: Path, capsys) -> None:
    made = tmp_path / "made.smi"
    arguments = ["evaluate-molecules", model, "-n", "20", "--reference", "40", "--save", str(made)]
    record = json.loads(printed(capsys, *arguments, "--json"))
    assert record["strings"] == 20
    assert made.read_text().splitlines() == indel.generate(indel.load(model), 20).texts


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["mutate", "MODEL", "C1CC"], "'C1CC' is not valid SMILES: ring 1 at position 1"),
        (["mutate", "MODEL", "C[Si](C)C"], "'[Si]' at position 1 is not in the vocabulary"),
        (["mutate", "MODEL", "C" * 70], "at most 64"),
        (["mutate", "text8", "a text", "--draw", "x.svg"], "must be one of SMILES strings"),
        (["infill", "MODEL", "C[nH{}"], "'[' at position 1 is not closed"),
        (["infill", "text8", "a {} b", "--draw", "x.svg"], "must be one of SMILES strings"),
        (["mend-molecules", "MODEL"], "give SMILES strings or --file"),
        (["mend-molecules", "MODEL", "C", "--file", "FILE"], "not both"),
        (["mend-molecules", "text8", "C("], "must be one of SMILES strings"),
        (["mend-molecules", "MODEL", "--file", "FILE"], "holds no molecules"),
        (["evaluate-molecules", "FILE"], "holds no molecules"),
        (["evaluate-molecules", "text8"], "must be one of SMILES strings"),
        (
            ["evaluate-molecules", "MODEL", "--data", "text8"],
            "--data must be moses or moses-sample",
        ),
        (["evaluate-molecules", "MODEL", "--data", "moses"], "--data FOLDER"),
        (["train", "moses", "--scale", "paper"], "must be one of tiny, laptop; got 'paper'"),
        (["train", "smiles:FILE", "--dry-run"], "holds no molecules"),
    ],
)
def test_mistakes_get_one_line(
    model: str, arguments: list[str], reason: str, tmp_path: Path, capfd, monkeypatch
) -> None:
    empty = tmp_path / "empty.smi"
    empty.write_text("\n")
    monkeypatch.chdir(tmp_path)
    words = [word.replace("MODEL", model).replace("FILE", str(empty)) for word in arguments]
    assert run(words) == 2
    out, error = capfd.readouterr()
    assert out == ""
    assert error.count("\n") == 1
    assert reason in error
    assert [path.name for path in tmp_path.iterdir()] == ["empty.smi"]


def test_without_rdkit_mutate_says_what_it_does_not_show(model: str) -> None:
    program = (
        "import sys; sys.modules['rdkit'] = None; from indel.cli import main; "
        f"sys.argv = ['indel', 'mutate', {model!r}, {ASPIRIN!r}, '-n', '1']; main()"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert " " not in done.stdout.strip()
    assert done.stderr.count("\n") == 1
    assert 'pip install "indel[molecules]"' in done.stderr
