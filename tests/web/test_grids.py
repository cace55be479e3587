"""Grids, and what is made of them: drawings, players and downloads."""

from __future__ import annotations

import io
import json
import re
from base64 import b64decode
from xml.etree import ElementTree

import pytest
import torch
from PIL import Image

from indel import Batch, CharacterVocabulary, IntegerVocabulary
from indel.drawing.colors import contrast
from indel.drawing.terminal import Fate
from indel.process import Schedule, corrupt_chain
from indel.sampling.trajectories import Trajectory
from indel.web.drawings import as_gif, as_svg
from indel.web.grids import Grid, Row, letter_look, number_look
from indel.web.players import downloads, player, standalone

TEXT8 = CharacterVocabulary.text8()


def drawn(text: str, steps: int = 8, seed: int = 0) -> Trajectory:
    """A chain of the process, backwards."""
    schedule = Schedule.paper(TEXT8.size, steps, 0.6)
    generator = torch.Generator().manual_seed(seed)
    chain = corrupt_chain(schedule, Batch.from_lists([TEXT8.encode(text)]), generator=generator)
    states = [state.to_lists()[0] for state in reversed(chain)]
    return Trajectory.of(range(steps, -1, -1), states, vocab_size=TEXT8.size)


@pytest.fixture
def trajectory() -> Trajectory:
    return drawn("a chain that grows and shrinks")


def columns(row: Row) -> list[int]:
    return [cell.column for cell in row.cells]


@pytest.mark.parametrize("seed", range(10))
def test_a_token_keeps_its_column_and_order_is_kept(seed: int) -> None:
    trajectory = drawn("a chain that grows and shrinks", seed=seed)
    grid = Grid.backwards(trajectory, letter_look(TEXT8))
    home: dict[int, int] = {}
    for row, names in zip(grid.rows, trajectory.identities, strict=True):
        assert columns(row) == sorted(set(columns(row)))
        for name, column in zip(names, columns(row), strict=True):
            assert home.setdefault(name, column) == column
    assert sorted(home.values()) == list(range(grid.columns))


def test_rows_spell_the_states(trajectory: Trajectory) -> None:
    grid = Grid.forwards(trajectory, letter_look(TEXT8))
    assert grid.rows[0].text == "a chain that grows and shrinks"
    assert [row.name for row in grid.rows][:2] == ["x₀", "x₁"]
    assert len(grid.rows) == 9
    assert grid.rows[-1].text == ""


@pytest.mark.parametrize("read", [Grid.forwards, Grid.backwards])
def test_places_open_before_letters_come_and_letters_are_marked_before_they_go(
    trajectory: Trajectory, read: object
) -> None:
    grid = read(trajectory, letter_look(TEXT8))  # type: ignore[operator]
    for before, after in zip(grid.rows, grid.rows[1:], strict=False):
        earlier = {cell.column: cell for cell in before.cells}
        later = {cell.column: cell for cell in after.cells}
        for column in later.keys() - earlier.keys():
            assert (later[column].ink.symbol, later[column].is_marker) == ("+", True)
        gone = earlier.keys() - later.keys()
        assert all(earlier[column].fate is Fate.DELETED for column in gone)
        # And nothing else is marked as going: DEL and INS live for one step.
        leaving = {c for c, cell in earlier.items() if cell.is_marker and cell.fate is Fate.DELETED}
        assert leaving == gone
        for column in later.keys() & earlier.keys():
            old, new = earlier[column], later[column]
            if not old.is_marker and not new.is_marker:
                same = old.ink == new.ink
                assert new.fate is (Fate.KEPT if same else Fate.REPLACED)


def test_a_letter_that_goes_is_shown_struck_out() -> None:
    chain = Trajectory.of([1, 0], [[TEXT8.del_], [TEXT8.encode("q")[0]]], vocab_size=TEXT8.size)
    (cell,) = Grid.forwards(chain, letter_look(TEXT8)).rows[1].cells
    assert (cell.ink.symbol, cell.fate) == ("q", Fate.DELETED)


def test_numbers_have_the_colours_of_the_paper() -> None:
    look = number_look(IntegerVocabulary(512))
    assert look.ink(347).symbol == "347"
    assert look.ink(347)[1:] == look.ink(47)[1:]
    assert look.ink(348).background != look.ink(347).background
    assert look.text([3, 5]) == "3 5"
    assert all(contrast(look.ink(n).background, look.ink(n).colour) >= 4.5 for n in range(100))


def test_pictures_show_whole_numbers() -> None:
    numbers = IntegerVocabulary(512)
    chain = Trajectory.of([1, 0], [[347, numbers.ins], [347]], vocab_size=512)
    grid = Grid.backwards(chain, number_look(numbers))
    root = ElementTree.fromstring(as_svg(grid))
    texts = [text.text for text in root.iter("{http://www.w3.org/2000/svg}text")]
    assert texts.count("347") == 2
    # Three digits are wider than one.
    assert float(root.attrib["width"]) > 2 * 30
    assert json.loads(grid.to_json())["noun"] == "number"


def test_the_empty_sequence_has_a_grid_and_pictures() -> None:
    grid = Grid.backwards(Trajectory.of([0], [[]], vocab_size=TEXT8.size), letter_look(TEXT8))
    assert grid.columns == 0
    assert as_gif(grid).startswith(b"GIF8")
    ElementTree.fromstring(as_svg(grid))


def test_gif_has_a_frame_for_each_step(trajectory: Trajectory) -> None:
    picture = Image.open(io.BytesIO(as_gif(Grid.backwards(trajectory, letter_look(TEXT8)))))
    assert picture.n_frames == 9
    ends = []
    for number in (0, 8):
        picture.seek(number)
        ends.append(picture.convert("RGB").tobytes())
    assert ends[0] != ends[1]


def test_svg_holds_every_letter(trajectory: Trajectory) -> None:
    grid = Grid.forwards(trajectory, letter_look(TEXT8))
    root = ElementTree.fromstring(as_svg(grid))
    texts = root.iter("{http://www.w3.org/2000/svg}text")
    letters = "".join(text.text or "" for text in texts)
    wanted = sum(len(row.cells) + len(row.name) for row in grid.rows)
    assert len(letters) == wanted


def test_hostile_symbols_stay_text() -> None:
    signs = CharacterVocabulary("<>&\"'")
    chain = Trajectory.of([1, 0], [[0, 1, 2, 3, 4], [4, 3, 2, 1, 0]], vocab_size=signs.size)
    grid = Grid.backwards(chain, letter_look(signs))
    ElementTree.fromstring(as_svg(grid))
    found = ElementTree.fromstring(player(grid, '<script>"'))
    assert json.loads(found.attrib["data-grid"])["rows"][0]["text"] == "<>&\"'"


def test_downloads_hold_the_files(trajectory: Trajectory) -> None:
    grid = Grid.backwards(trajectory, letter_look(TEXT8))
    links = re.findall(r'download="([^"]+)" href="data:[^,"]+,([^"]+)"', downloads(grid, "x"))
    contents = {name: b64decode(content) for name, content in links}
    assert contents == {
        "x.gif": as_gif(grid),
        "x.html": standalone(grid, "x").encode(),
        "x.svg": as_svg(grid).encode(),
    }


def test_the_page_of_its_own_asks_for_nothing(trajectory: Trajectory) -> None:
    page = standalone(Grid.backwards(trajectory, letter_look(TEXT8)), "x")
    assert "http" not in page
    assert "prefers-color-scheme: dark" in page
    assert "src=" not in page
