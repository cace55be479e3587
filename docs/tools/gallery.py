"""The trajectories, repairs and drawings of docs/gallery.md, from the models in the package.

python docs/tools/gallery.py          all of them, into docs/gallery and docs/images
python docs/tools/gallery.py forward  one of them
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from datetime import date
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "src"))

import torch  # noqa: E402

import indel  # noqa: E402
from indel.molecules.pictures import picture  # noqa: E402
from indel.molecules.relatives import panels, relatives  # noqa: E402
from indel.process import corrupt_chain  # noqa: E402
from indel.sampling.generation import Samples  # noqa: E402
from indel.sampling.trajectories import Trajectory  # noqa: E402
from indel.web.grids import Grid, letter_look, number_look  # noqa: E402

GALLERY = ROOT / "docs/gallery"
SENTENCE = "this sentence was typed very badly"
TYPED = "thisn sentsnetne wasstype vssry babdly"
BADLY_TYPED = [
    TYPED,
    "The Goverment says tecnologies from www.example.org are importent, becouse peple like them.",
    "i recieve teh newspaper evry mornign",
]
ASPIRIN = "CC(=O)Oc1ccccc1C(=O)O"


def arithmetic() -> None:
    """Numbers out of nothing but a length."""
    model = indel.load("arithmetic")
    samples = indel.generate(model, 1, seed=0, keep_trajectories=True)
    grid = Grid.backwards(_only(samples), number_look(model.vocabulary))
    _keep("arithmetic", "A sequence of numbers comes to be", grid, _by("arithmetic", 0))


def text() -> None:
    """Text out of nothing but a length."""
    model = indel.load("text8")
    samples = indel.generate(model, 1, seed=1, temperature=0.8, keep_trajectories=True)
    grid = Grid.backwards(_only(samples), letter_look(model.vocabulary))
    _keep("text", "A text comes to be", grid, _by("text8", 1) + ", temperature 0.8")


def repair() -> None:
    """A badly typed sentence, as x_10, by both models of text."""
    for name, title in (("text8", "with insertion and deletion"), ("in-place", "in place")):
        model = indel.load(name)
        samples = indel.denoise_from(model, [TYPED], 10, seed=2, keep_trajectories=True)
        grid = Grid.backwards(_only(samples), letter_look(model.vocabulary))
        _keep(f"repair-{name}", f"A sentence is repaired {title}", grid, _by(name, 2) + ", t = 10")


def forward() -> None:
    """The noise takes a sentence apart."""
    letters = indel.CharacterVocabulary.text8()
    schedule = indel.Schedule.paper(letters.size, num_steps=12, rate=0.6)
    x_0 = indel.Batch.from_lists([letters.encode(SENTENCE)])
    chain = corrupt_chain(schedule, x_0, generator=torch.Generator().manual_seed(0))
    states = [batch.to_lists()[0] for batch in chain]
    times = range(len(states) - 1, -1, -1)
    trajectory = Trajectory.of(list(times), states[::-1], vocab_size=letters.size)
    grid = Grid.forwards(trajectory, letter_look(letters))
    _keep("forward", "The noise takes a sentence apart", grid, "rate 0.6, 12 steps, seed 0")


def repairs() -> None:
    """Sentences before and after `indel.repair`."""
    rows = [{"typed": each, "mended": indel.repair(each).text} for each in BADLY_TYPED]
    _write("repairs", {"rows": rows, "caption": _by("text8", 0)})


def molecule() -> None:
    """A molecule out of nothing but a length."""
    model = indel.load("moses")
    samples = indel.generate(model, 1, seed=0, temperature=0.5, keep_trajectories=True)
    grid = Grid.backwards(_only(samples), letter_look(model.vocabulary))
    _keep("molecule", "A molecule comes to be", grid, _by("moses", 0) + ", temperature 0.5")


def molecules() -> None:
    """Aspirin and what the model makes of it with few edits."""
    made = indel.mutate(indel.load("moses"), ASPIRIN, 5, edits=(1, 4), seed=0).texts
    drawn = picture(panels(ASPIRIN, relatives(ASPIRIN, made)), columns=4)
    (ROOT / "docs/images/molecules.svg").write_text(drawn, encoding="utf-8")


PARTS: dict[str, Callable[[], None]] = {
    each.__name__: each
    for each in (arithmetic, text, repair, forward, repairs, molecule, molecules)
}


def _only(samples: Samples) -> Trajectory:
    assert samples.trajectories is not None
    return samples.trajectories[0]


def _by(model: str, seed: int) -> str:
    return f"the bundled model {model} of {date.today():%Y-%m-%d}, seed {seed}"


def _keep(name: str, title: str, grid: Grid, caption: str) -> None:
    record = {"title": title, "caption": caption, "grid": json.loads(grid.to_json())}
    _write(name, record)


def _write(name: str, record: object) -> None:
    GALLERY.mkdir(exist_ok=True)
    text = json.dumps(record, ensure_ascii=False, separators=(",", ":"))
    (GALLERY / f"{name}.json").write_text(f"{text}\n", encoding="utf-8")


if __name__ == "__main__":
    for part in sys.argv[1:] or PARTS:
        PARTS[part]()
        print(part)
