"""Metrics of molecules: against other implementations, and against what MOSES's paper prints."""

from __future__ import annotations

import math
import os
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from rdkit import DataStructs
from rdkit.Chem import MolFromSmiles
from rdkit.Chem.AllChem import GetMorganGenerator
from scipy import linalg, stats
from scipy.spatial.distance import cosine as scipy_cosine

from indel.data import MosesSample
from indel.data.molecules import MosesData
from indel.molecules.chemistry import canonical, molecule, parsed
from indel.molecules.chemnet import activations, frechet_distance
from indel.molecules.filters import passes_filters
from indel.molecules.fingerprints import (
    fingerprints,
    internal_diversity,
    nearest_neighbor_similarity,
    similarity,
)
from indel.molecules.metrics import Reference, measure
from indel.molecules.parts import cosine, fragments, scaffold
from indel.molecules.properties import PROPERTIES, wasserstein
from indel.molecules.published import PUBLISHED
from indel.molecules.statistics import Statistics

MOSES = os.environ.get("INDEL_TEST_MOSES")
TRAIN = PUBLISHED["Train"]


@pytest.fixture(scope="module")
def training() -> list[str]:
    return MosesSample().texts("train", 400)


@pytest.fixture(scope="module")
def references(tmp_path_factory: pytest.TempPathFactory) -> list[Reference]:
    cache = tmp_path_factory.mktemp("cache")
    found = []
    for name, scaffolds in (("Test", False), ("TestSF", True)):
        smiles = MosesSample(scaffolds=scaffolds).texts("test", 300)
        found.append(Reference(name, smiles, Statistics.kept(smiles, cache=cache)))
    return found


# ---------------------------------------------------------------- other implementations


def test_similarities_are_those_of_rdkit(training: list[str]) -> None:
    first, second = training[:40], training[40:90]
    maker = GetMorganGenerator(radius=2, fpSize=1024)
    bits = [[maker.GetFingerprint(MolFromSmiles(s)) for s in part] for part in (first, second)]
    table = np.array([DataStructs.BulkTanimotoSimilarity(each, bits[1]) for each in bits[0]])
    own, others = fingerprints(map(parsed, first)), fingerprints(map(parsed, second))
    assert nearest_neighbor_similarity(own, others) == pytest.approx(table.max(1).mean(), abs=1e-6)
    assert similarity(parsed(first[0]), parsed(second[0])) == pytest.approx(table[0, 0])
    square = np.array([DataStructs.BulkTanimotoSimilarity(each, bits[0]) for each in bits[0]])
    assert internal_diversity(own) == pytest.approx(1 - square.mean(), abs=1e-6)
    second_power = 1 - np.sqrt((square**2).mean(1)).mean()
    assert internal_diversity(own, 2) == pytest.approx(second_power, abs=1e-6)


def test_molecules_without_bits_are_alike() -> None:
    nothing = np.zeros((2, 1024), dtype=np.uint8)
    assert nearest_neighbor_similarity(nothing, nothing) == 1.0
    assert internal_diversity(nothing) == 0.0


@pytest.mark.parametrize(("first", "second"), [(1, 1), (5, 50), (200, 31)])
def test_wasserstein_is_that_of_scipy(first: int, second: int) -> None:
    chance = np.random.default_rng(first)
    one, other = chance.normal(size=first), chance.integers(0, 3, size=second).astype(float)
    expected = stats.wasserstein_distance(one, other)
    assert wasserstein(one, other) == pytest.approx(expected)


def test_cosine_is_that_of_scipy() -> None:
    one, other = Counter("aabbbc"), Counter("abdd")
    vectors = [[each[key] for key in "abcd"] for each in (one, other)]
    assert cosine(one, other) == pytest.approx(1 - scipy_cosine(*vectors))
    assert cosine(Counter("a"), Counter("b")) == 0.0
    assert math.isnan(cosine(Counter(), one))


def test_frechet_distance_is_that_of_the_definition() -> None:
    chance = np.random.default_rng(0)
    one, other = chance.normal(size=(50, 4)), chance.normal(size=(60, 4)) @ np.diag([1, 2, 3, 4])
    covariances = np.cov(one.T), np.cov(other.T)
    root = linalg.sqrtm(covariances[0] @ covariances[1]).real
    apart = one.mean(0) - other.mean(0)
    expected = apart @ apart + np.trace(covariances[0] + covariances[1] - 2 * root)
    assert frechet_distance(one, other) == pytest.approx(expected)
    assert frechet_distance(one, one) == pytest.approx(0.0, abs=1e-9)
    assert math.isnan(frechet_distance(one[:1], other))


def test_known_molecules() -> None:
    caffeine, aspirin = molecule("Cn1c(=O)c2c(ncn2C)n(C)c1=O"), molecule("CC(=O)Oc1ccccc1C(=O)O")
    # The mass of C8H10N4O2, and Bickerton's QED of aspirin as RDKit's manual has it.
    assert PROPERTIES["weight"](caffeine) == pytest.approx(194.19, abs=0.01)
    assert PROPERTIES["QED"](aspirin) == pytest.approx(0.550, abs=0.001)
    assert PROPERTIES["logP"](molecule("c1ccccc1")) == pytest.approx(1.6866, abs=1e-4)
    assert 1 <= PROPERTIES["SA"](aspirin) < 2 < PROPERTIES["SA"](molecule("C1CC2(C1)C1CC3C2C13"))
    assert scaffold(caffeine) == "O=c1[nH]c(=O)c2[nH]cnc2[nH]1"
    assert scaffold(aspirin) is None
    assert Counter(fragments(aspirin)) == Counter(
        ["[1*]C(C)=O", "[3*]O[3*]", "[16*]c1ccccc1[16*]", "[6*]C(=O)O"]
    )


# ---------------------------------------------------------------- the paper of MOSES


def test_the_training_set_has_the_metrics_that_the_paper_prints(
    training: list[str], references: list[Reference]
) -> None:
    """Those that do not depend on how many molecules there are, or do so in a known way."""
    found = measure(training, references, MosesSample().texts("train"))
    for name in ("valid", "unique@1k", "unique@10k", "Filters", "Scaf/TestSF"):
        assert found[name] == TRAIN[name], name
    assert found["Novelty"] == 0.0
    assert found["Frag/Test"] > 0.97
    assert found["Frag/TestSF"] > 0.97
    # The nearest of 300 is further away than that of 176,074.
    assert 0.25 < found["SNN/Test"] < TRAIN["SNN/Test"]
    assert found["weight"] < 6
    assert found["QED"] < 0.03


def test_the_training_set_is_as_diverse_as_the_paper_prints() -> None:
    bits = fingerprints(map(parsed, MosesSample().texts("train", 1500)))
    assert internal_diversity(bits, 1) == pytest.approx(TRAIN["IntDiv"], abs=0.003)
    # Each molecule is paired with itself too, which lowers the second one by 0.002 here.
    assert internal_diversity(bits, 2) == pytest.approx(TRAIN["IntDiv2"], abs=0.004)


def test_metrics_notice_what_is_wrong(training: list[str], references: list[Reference]) -> None:
    good = measure(training[:150], references[:1])
    chains = measure([f"C{'C' * (n % 7)}O" for n in range(150)], references[:1])
    assert chains["unique@1k"] == pytest.approx(7 / 150)
    for name in ("SNN/Test", "Frag/Test", "IntDiv"):
        assert chains[name] < good[name] - 0.1, name
    for name in PROPERTIES:
        assert chains[name] > 3 * good[name], name
    assert math.isnan(chains["Scaf/Test"])
    worse = measure([*training[:100], "C1CC", "", "c1cccc1", "CC(C)(C)(C)C"], references[:1])
    assert worse["valid"] == 100 / 104


@pytest.mark.slow
@pytest.mark.skipif(MOSES is None, reason="INDEL_TEST_MOSES names no folder of MOSES")
@pytest.mark.parametrize(("name", "scaffolds"), [("SNN/Test", False), ("SNN/TestSF", True)])
def test_nearest_neighbors_in_all_of_moses(name: str, scaffolds: bool, tmp_path: Path) -> None:
    assert MOSES is not None
    data = MosesData(MOSES, cache=tmp_path, scaffolds=scaffolds)
    own = fingerprints(map(parsed, data.texts("train", 3000)))
    test = fingerprints(map(parsed, data.texts("test")))
    assert nearest_neighbor_similarity(own, test) == pytest.approx(TRAIN[name], abs=0.006)


def test_filters() -> None:
    refused = {
        "CC=O": "an aldehyde",
        "CCN=[N+]=[N-]": "charges",
        "CC[Si](C)C": "an element",
        "C1CCCCCCC1": "a ring of eight",
        "CC1CO1": "an epoxide",
        "O=C1CSC(=S)N1C": "rhodanine, of PAINS",
    }
    for smiles, why in refused.items():
        assert not passes_filters(molecule(smiles)), why
    assert passes_filters(molecule("C1CCCCCC1"))


def test_chemnet_tells_sets_apart(training: list[str]) -> None:
    pytest.importorskip("fcd")
    half, other = activations(training[:100]), activations(training[100:200])
    chains = activations([f"C{'C' * (n % 9)}O" for n in range(100)])
    assert half.shape == (100, 512)
    assert frechet_distance(half, other) < frechet_distance(half, chains) / 2


# ---------------------------------------------------------------- strings and files


def test_what_is_no_molecule() -> None:
    for smiles in ("", " ", "C C", "C1CC", "c1cccc1", "CF(C)C", "C(C", "not", "C\n"):
        assert parsed(smiles) is None, smiles
    assert canonical(parsed("C(O)C")) == "CCO"


@pytest.mark.parametrize(
    ("smiles", "reason"),
    [
        ("", "it is empty"),
        ("C[nH", "'[' at position 1 is not closed"),
        ("C(C", "'(' at position 1 is not closed"),
        ("C==C", "do not follow each other"),
        ("CF(C)C", "valence"),
        ("c1cccc1", "kekulize"),
    ],
)
def test_a_refusal_says_why(smiles: str, reason: str, capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(ValueError, match="is not valid SMILES") as error:
        molecule(smiles)
    assert reason in str(error.value)
    assert repr(smiles) in str(error.value)
    # RDKit logs from C++, past Python's streams.
    assert capfd.readouterr() == ("", "")


def test_nothing_generated_is_an_error_unlike_nothing_valid(
    references: list[Reference],
) -> None:
    with pytest.raises(ValueError, match="at least one"):
        measure([])
    found = measure(["C1CC"], references, [])
    assert found.pop("valid") == 0.0
    assert all(map(math.isnan, found.values()))


def test_statistics_are_kept_and_made_again_when_damaged(tmp_path: Path) -> None:
    smiles = ["CCO", "c1ccc2ccccc2c1", "CCOC"]
    first = Statistics.kept(smiles, cache=tmp_path)
    (file,) = (tmp_path / "molecules").iterdir()
    before = file.stat().st_mtime_ns
    for content in (None, b"", b"PK damaged"):
        if content is not None:
            file.write_bytes(content)
        again = Statistics.kept(smiles, cache=tmp_path)
        assert again.fragments == first.fragments
        assert again.scaffolds == first.scaffolds == Counter(["c1ccc2ccccc2c1"])
        assert (again.bits == first.bits).all()
        for name in PROPERTIES:
            assert (again.properties[name] == first.properties[name]).all()
        assert (file.stat().st_mtime_ns == before) == (content is None)
    Statistics.kept(smiles[:2], cache=tmp_path)
    assert len(list((tmp_path / "molecules").iterdir())) == 2
