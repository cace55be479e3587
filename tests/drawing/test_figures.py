"""Figures 1, 2, 4 and 7 and the curves show what they are given: counts, texts, values."""

from __future__ import annotations

from io import BytesIO

import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch, Rectangle

from indel import Batch, CharacterVocabulary, IntegerVocabulary
from indel.drawing import colors
from indel.drawing.edit_arrows import figure2
from indel.drawing.layouts import upright_rows
from indel.drawing.learning_curves import Curve, draw_learning_curves
from indel.drawing.letter_pictures import draw_sections
from indel.drawing.letter_rows import (
    Letter,
    LetterRow,
    Look,
    generation_rows,
    html_page,
    repair_row,
    rows_as_text,
)
from indel.drawing.noise_curves import figure7
from indel.drawing.number_grids import figure1
from indel.experiments.forward_chain import CHAIN, LETTERS
from indel.process import Schedule
from indel.sampling.trajectories import Trajectory

NUMBERS = IntegerVocabulary(130)
INS, DEL = 130, 131
ABC = CharacterVocabulary("abcdefgh ")


def texts(figure: Figure) -> list[str]:
    return [text.get_text() for axis in figure.axes for text in axis.texts]


def rendered(figure: Figure) -> bytes:
    """Drawn for real: text that cannot be drawn is a warning, and warnings are errors."""
    file = BytesIO()
    figure.savefig(file, format="png", dpi=60)
    return file.getvalue()


# ---------------------------------------------------------------- figure 1


@pytest.mark.parametrize(
    ("last_digits", "signs"), [(False, ("117", "42", "8")), (True, ("7", "2", "8"))]
)
def test_figure1_has_a_square_for_each_token_and_a_line_for_each_link(
    last_digits: bool, signs: tuple[str, ...]
) -> None:
    states = [[DEL, DEL], [117, INS, 8], [117, 23, DEL, 8], [117, 23, 42, 8]]
    with pytest.raises(ValueError, match="as many tokens"):
        Trajectory.of([3, 2, 1, 0], states, vocab_size=130)  # 23 comes from nowhere
    states[2] = [117, DEL, 8]
    states[3] = [117, 42, 8]
    states[0] = [DEL, DEL, DEL]
    trajectory = Trajectory.of([3, 2, 1, 0], states, vocab_size=130)
    figure = figure1(trajectory, NUMBERS, last_digits=last_digits)
    axis = figure.axes[0]
    squares = [patch for patch in axis.patches if isinstance(patch, Rectangle)]
    assert len(squares) == sum(map(len, states))
    links = sum(parent >= 0 for row in trajectory.parents for parent in row)
    assert len(axis.lines) == links
    shown = texts(figure)
    # 117, 42 and 8 as a whole, or, as in the paper, by their last digit.
    assert [shown.count(sign) for sign in ("D", "I", *signs)] == [4, 1, 3, 1, 3]
    assert {f"$x_{{{t}}}$" for t in range(4)} < set(shown)
    assert rendered(figure)


@pytest.mark.parametrize("length", [1, 9, 90])
def test_figure1_keeps_its_arrows_and_labels_on_the_page(length: int) -> None:
    numbers = list(range(length))
    figure = figure1(Trajectory.of([1, 0], [numbers, numbers], vocab_size=130), NUMBERS)
    rendered(figure)
    axis = figure.axes[0]
    arrows = [patch for patch in axis.patches if isinstance(patch, FancyArrowPatch)]
    assert len(arrows) == 2
    low, high = axis.get_window_extent().intervalx
    for drawn in (*arrows, *axis.texts):
        left, right = drawn.get_window_extent().intervalx
        assert low <= left
        assert right <= high


def test_figure1_colours_numbers_by_their_rest_mod_100() -> None:
    trajectory = Trajectory.of([1, 0], [[17, 117, 18], [17, 117, 18]], vocab_size=130)
    axis = figure1(trajectory, NUMBERS).axes[0]
    faces = [
        to_hex(patch.get_facecolor()) for patch in axis.patches if isinstance(patch, Rectangle)
    ]
    assert faces[0] == faces[1] != faces[2]


def test_rows_stand_where_most_of_their_tokens_stood() -> None:
    rows = upright_rows([3, 4, 0, 2], [[(0, 1), (1, 2), (2, 3)], [], []])
    assert rows == [[1.0, 2.0, 3.0], [0.0, 1.0, 2.0, 3.0], [], [1.0, 2.0]]


# ---------------------------------------------------------------- figure 2


def paper_chain() -> tuple[list[Batch], CharacterVocabulary]:
    vocabulary = CharacterVocabulary(LETTERS)
    signs = {"+": vocabulary.ins, "×": vocabulary.del_}
    states = [[signs.get(sign, LETTERS.find(sign)) for sign in state] for state in CHAIN]
    return [Batch.from_lists([state]) for state in states], vocabulary


def test_figure2_draws_the_paper_s_chain_and_the_edits_that_follow_from_it() -> None:
    figure = figure2(*paper_chain())
    (axis,) = figure.axes
    arrows = [patch for patch in axis.patches if isinstance(patch, FancyArrowPatch)]
    kinds = [to_hex(arrow.get_edgecolor()) for arrow in arrows]
    # Chain: 6 + 6 + 7 links. Summary: a, b → h, c → i, d → DEL and f, inserted g, INS and DEL.
    assert len(arrows) == 19 + 8
    assert kinds[19:].count(to_hex(colors.INSERT)) == 3
    assert kinds[19:].count(to_hex(colors.REPLACE)) == 2
    assert kinds[19:].count(to_hex("black")) == 2
    # e alone is lost without a trace: a line to a dot and no arrow.
    stubs = [line for line in axis.lines if len(line.get_xdata()) == 2]
    assert [to_hex(line.get_color()) for line in stubs].count(to_hex(colors.DELETE)) == 1
    shown = texts(figure)
    assert (shown.count("INS"), shown.count("DEL"), shown.count("e")) == (5, 6, 2)
    assert r"$a_{0\to 3}$" in shown
    assert rendered(figure)


# ---------------------------------------------------------------- figure 4


def repair() -> Trajectory:
    """x_2 = abc de, of which "abc" was typed: b is lost, d put in after c, which becomes e."""
    a, b, c, d, e = range(5)
    ins, del_ = ABC.ins, ABC.del_
    return Trajectory.of(
        [2, 1, 0],
        [[a, b, c, 8, d, e], [a, ins, e, del_, 8, d, e], [a, e, d, 8, d, e]],
        vocab_size=ABC.size,
    )


def test_a_repair_is_told_by_identity() -> None:
    row = repair_row(repair(), ABC, 3)
    assert row.letters == (
        Letter("a", Look.SETTLED),
        Letter("×", Look.DELETED),
        Letter("e", Look.REPLACED),
        Letter("d", Look.INSERTED),
    )


def test_a_repair_that_loses_its_end_shows_it() -> None:
    a, b, c = range(3)
    gone = Trajectory.of([2, 1, 0], [[a, b, c], [a, ABC.ins, c], [a, c]], vocab_size=ABC.size)
    assert repair_row(gone, ABC, 2).text == "a×"


def test_generation_is_faint_until_it_is_settled() -> None:
    rows = generation_rows(repair(), ABC, [0, 1, 2])
    assert [row.text for row in rows] == ["abc de", "a+e× de", "aed de"]
    assert [letter.look for letter in rows[0].letters[:3]] == [
        *(Look.SETTLED, Look.PASSING, Look.PASSING)
    ]
    assert rows[1].letters[1].look is Look.INSERTED
    assert [row.name for row in generation_rows(repair(), ABC, [0, 2])] == ["2", "0"]


def test_plain_text_aligns_names() -> None:
    rows = [LetterRow("9", (Letter("a", Look.SETTLED),)), LetterRow("10", ())]
    assert rows_as_text(rows) == " 9  a\n10\n"


def test_html_escapes_all_text_and_needs_nothing_from_elsewhere() -> None:
    evil = LetterRow('<b>"', tuple(Letter(sign, Look.INSERTED) for sign in "<script>&"))
    page = html_page("<title>", [("a & b", [evil])])
    assert "<script" not in page
    assert "&lt;script&gt;&amp;" in page
    assert "<h2>a &amp; b</h2>" in page
    assert page.count("<title>") == 1
    assert "http" not in page
    assert '<span class="inserted">' in page


def test_picture_keeps_letters_in_their_columns() -> None:
    letters = (*(Letter(sign, Look.SETTLED) for sign in "ab"), Letter("c", Look.INSERTED))
    figure = draw_sections([("Heading", [LetterRow("1", letters)])], "note")
    FigureCanvasAgg(figure).draw()
    (axis,) = figure.axes
    placed = {text.get_text(): text.get_position()[0] for text in axis.texts}
    (advance,) = {placed["c"] - placed["ab"]}
    assert advance == pytest.approx(2 * 0.6021 * 8 / 72)
    assert {"Heading", "note", "1"} < set(placed)
    fills = [patch for patch in axis.patches if isinstance(patch, Rectangle)]
    assert len(fills) == 1


# ---------------------------------------------------------------- figure 7 and curves


def test_figure7_shows_the_schedule_s_own_numbers() -> None:
    schedule = Schedule.paper(512, 10, 0.6)
    step, jump = figure7(schedule).axes
    levels = schedule.describe()
    drawn = [line.get_ydata().tolist() for line in step.lines]
    assert drawn == [
        [level.copy for level in levels],
        [level.replace for level in levels],
        [level.delete for level in levels],
        [level.insert for level in levels],
    ]
    # 1 − r·u_t of x_0 is never deleted.
    fractions = [t / 9 for t in range(10)]
    expected = [1 - 0.6 * (0.1 * s + 0.9 * s * s) for s in fractions]
    assert jump.lines[0].get_ydata().tolist()[:-1] == pytest.approx(expected)
    assert jump.lines[0].get_ydata()[-1] == 0.0


def test_many_curves_are_all_drawn_and_differ() -> None:
    panels = {"bound": {str(n): [Curve([0.5, 1.0], [3.0, n])] for n in range(12)}}
    (axis,) = draw_learning_curves(panels, unit="CPU-minutes").axes
    assert len({(line.get_color(), line.get_linestyle()) for line in axis.lines}) == 12
    assert axis.get_xlabel() == "CPU-minutes"


def test_curves_have_a_line_for_each_run_and_one_legend_entry_for_each_name() -> None:
    curves = [Curve([10, 20], [3.0, 2.0]), Curve([10, 20], [4.0, 1.0])]
    panels = {"bound": {"in place": curves, "0.6": curves[:1]}}
    figure = draw_learning_curves(panels, paper={"bound": {"0.6": 1.5}})
    (axis,) = figure.axes
    assert len(axis.lines) == 4
    assert axis.lines[-1].get_ydata() == [1.5, 1.5]
    (legend,) = figure.legends
    assert [text.get_text() for text in legend.get_texts()] == ["in place", "0.6"]
    assert rendered(figure)


def test_the_legend_of_many_long_names_fits_the_picture() -> None:
    run = [Curve([1, 2], [3.0, 2.0])]
    names = [f"insertion-deletion-transformer-{number}" for number in range(13)]
    figure = draw_learning_curves({"bound": dict.fromkeys(names, run), "samples": {}})
    figure.canvas.draw()
    (legend,) = figure.legends
    inside = legend.get_window_extent()
    assert inside.x0 >= 0
    assert inside.x1 <= figure.bbox.x1


def test_a_name_looks_the_same_in_every_panel_and_in_the_legend() -> None:
    run = [Curve([10, 20], [3.0, 2.0])]
    figure = draw_learning_curves({"bound": {"a": run, "b": run}, "samples": {"b": run}})
    bound, samples = figure.axes
    (legend,) = figure.legends
    looks = {line.get_color() for line in (bound.lines[1], samples.lines[0], legend.get_lines()[1])}
    assert len(looks) == 1
    assert bound.lines[0].get_color() not in looks
