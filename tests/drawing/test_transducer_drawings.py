"""What the drawings say, and that they say it about the machine they are given."""

from __future__ import annotations

from io import BytesIO
from itertools import combinations
from math import prod
from typing import Any

import pytest
import sympy
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.patches import Circle, FancyArrowPatch
from matplotlib.path import Path
from matplotlib.text import Text
from matplotlib.transforms import Bbox

from indel.drawing.arc_groups import ArcGroup, TokenSum, fold_sums, group_arcs
from indel.drawing.arc_labels import (
    TokenNames,
    conditions,
    formula_lines,
    weight_formula,
    word_lines,
)
from indel.drawing.transducers import (
    MOVES,
    draw_transducer,
    figure3,
    figure5,
    figure6,
    symbolic_jump,
    symbolic_step,
)
from indel.process.composition import compose
from indel.process.edit_transducers import derive_jump, identity_transducer, step_transducer
from indel.process.transducers import EPSILON, Arc, Transducer

TAPE_NAMES = ("x_0", "x_{t-1}", "x_t")
ALPHA, BETA, REPLACE = (
    rf"[\overline{{{letter}}}_{{t-1}}]" for letter in (r"\alpha", r"\beta", "Q")
)


def number_step(keep: float = 0.5) -> Transducer:
    """Keep, replace or delete one of two tokens."""
    change = 0.7 - keep
    rows = [[keep, change, 0, 0.3], [change, keep, 0, 0.3], [0.35, 0.35, 0, 0.3], [0] * 4]
    return step_transducer(0.25, rows)


def texts(where: Figure | Axes) -> list[str]:
    """All texts, mathtext with its thin spaces removed."""
    found = where.findobj(lambda artist: isinstance(artist, Text) and artist.get_text() != "")
    return [text.get_text().replace(r"\,", "").replace("\\ ", " ") for text in found]


def drawn(machine: Transducer, variables: tuple[str, ...], **options: Any) -> Axes:
    axis = Figure(figsize=(11, 5)).add_axes((0, 0, 1, 1))
    draw_transducer(machine, axis, variables=variables, **options)
    return axis


# ---------------------------------------------------------------- content


def test_figure5_has_the_labels_of_the_paper() -> None:
    step, jump, both = (texts(axis) for axis in figure5().axes)
    markers = r"$(y \neq \mathrm{DEL}, z \neq \mathrm{INS})$"
    assert {r"$S_{\mathrm{A}}$", r"$S_{\mathrm{B}}$"} < set(step)
    assert {
        r"$\alpha_t$ $: \varepsilon \mapsto \mathrm{INS}$",
        "$1 - \\alpha_t$\n$: \\varepsilon \\mapsto \\varepsilon$",
        r"$1$ $: \mathrm{DEL} \mapsto \varepsilon$",
        "$[Q_t]_{yz}$\n$: y \\mapsto z$\n" + markers,
    } < set(step)
    assert {
        rf"${ALPHA}_{{y}}$ $: \varepsilon \mapsto y$",
        f"$1 - \\Sigma_{{y}}{ALPHA}_{{y}}$\n$: \\varepsilon \\mapsto \\varepsilon$",
        rf"${BETA}_{{x}}$ $: x \mapsto \varepsilon$",
        f"${REPLACE}_{{xy}}$\n$: x \\mapsto y$",
    } < set(jump)
    silent = r"$: \varepsilon \mapsto \varepsilon \mapsto \varepsilon$"
    assert {
        r"$\alpha_t$ $: \varepsilon \mapsto \varepsilon \mapsto \mathrm{INS}$",
        f"$1 - \\alpha_t$\n{silent}",
        rf"${ALPHA}_{{\mathrm{{DEL}}}}$ $: \varepsilon \mapsto \mathrm{{DEL}} \mapsto \varepsilon$",
        f"${ALPHA}_{{y}} \\cdot [Q_t]_{{yz}}$\n$: \\varepsilon \\mapsto y \\mapsto z$\n{markers}",
        f"$1 - \\Sigma_{{y}}{ALPHA}_{{y}}$\n{silent}",
        rf"${BETA}_{{x}}$ $: x \mapsto \varepsilon \mapsto \varepsilon$",
        f"${REPLACE}_{{x\\mathrm{{DEL}}}}$\n$: x \\mapsto \\mathrm{{DEL}} \\mapsto \\varepsilon$",
        rf"${REPLACE}_{{xy}} \cdot [Q_t]_{{yz}}$ $: x \mapsto y \mapsto z$  {markers}",
    } < set(both)


def test_figure6_has_the_labels_of_the_paper_and_eqs_10_to_12() -> None:
    marginal, derived = (texts(axis) for axis in figure6().axes)
    product = r"[\overline{\alpha}_{t-1}^{\top}Q_t]_{z}"
    loops = rf"1 - {ALPHA}_{{\mathrm{{DEL}}}}"
    deleted = rf"{REPLACE}_{{x\mathrm{{DEL}}}}"
    not_ins = r"$(z \neq \mathrm{INS})$"
    assert {
        f"${product}$\n$: \\varepsilon \\mapsto z$\n{not_ins}",
        rf"${ALPHA}_{{\mathrm{{DEL}}}}$ $: \varepsilon \mapsto \varepsilon$",
        f"${deleted}$\n$: x \\mapsto \\varepsilon$",
        rf"$[\overline{{Q}}_{{t-1}}Q_t]_{{xz}}$ $: x \mapsto z$  {not_ins}",
    } < set(marginal)
    assert {
        rf"$\dfrac{{1 - \alpha_t}}{{{loops}}}{product}$ $: \varepsilon \mapsto z$  {not_ins}"
        "\n"
        r"$\alpha_t$ $: \varepsilon \mapsto \mathrm{INS}$",
        rf"${BETA}_{{x}} + \dfrac{{{deleted} \cdot (1 - \Sigma_{{y}}{ALPHA}_{{y}})}}{{{loops}}}$"
        r" $: x \mapsto \varepsilon$",
        rf"$[\overline{{Q}}_{{t-1}}Q_t]_{{xz}} + \dfrac{{{deleted}}}{{{loops}}}{product}$"
        f"\n$: x \\mapsto z$\n{not_ins}",
    } < set(derived)


def test_figure3_says_what_the_paper_says() -> None:
    step, jump, both = (texts(axis) for axis in figure3().axes)
    markers = r"$(y \neq \mathrm{DEL}, z \neq \mathrm{INS})$"
    assert {
        r"Insert $\mathrm{INS}$ with prob. $\alpha_t$",
        "Stop inserting\nwith prob. $1 - \\alpha_t$",
        r"Delete $\mathrm{DEL}$",
        f"Replace $y$ with $z$\nwith prob. $[Q_t]_{{yz}}$\n{markers}",
    } < set(step)
    assert {
        "Insert any token",
        "Stop inserting",
        "Delete any token",
        "Replace $x$ with $y$\n(or delete $x$ and insert $y$)",
    } < set(jump)
    assert {
        r"Insert $\mathrm{INS}$",
        "Stop inserting for $x_t$",
        "Stop inserting for $x_{t-1}$",
        r"Insert $\mathrm{DEL}$, then delete it",
        f"Insert $y$,\nthen replace $y$ with $z$\n{markers}",
        "Replace $x$ with $\\mathrm{DEL}$,\nthen delete it",
        "Delete any token",
        "Replace $x$ with $y$ (or delete $x$ and insert $y$), "
        f"then replace $y$ with $z$  {markers}",
    } < set(both)


def test_states_and_arrows_are_those_of_the_machine() -> None:
    axis = drawn(compose(symbolic_jump(2), symbolic_step(2)), ("x", "y", "z"))
    circles = [p for p in axis.patches if isinstance(p, Circle)]
    arrows = [p for p in axis.patches if isinstance(p, FancyArrowPatch)]
    assert len(circles) == 3 + 1 + 1, "three states, a second outline for the last, a dot to start"
    assert len(arrows) == 8 + 1, "one for each pair of states that arcs connect, one to start"
    colours = [arrow.get_edgecolor()[:3] for arrow in arrows]
    assert len(set(colours)) == len(MOVES) + 1
    assert sum(arrow.get_linestyle() == "--" for arrow in arrows) == 3, "the silent arcs"


# ---------------------------------------------------------------- changes show


def test_a_step_without_inserts_is_drawn_without_them() -> None:
    calm = step_transducer(0, [[sympy.Symbol("keep"), 0, sympy.Symbol("lose")], [1, 0, 0], [0] * 3])
    shown = "\n".join(texts(drawn(calm, ("y", "z"))))
    assert r"\varepsilon \mapsto \mathrm{INS}" not in shown
    assert r"$keep$ $: \mathrm{a} \mapsto \mathrm{a}$" in shown
    assert r"$1$ $: \mathrm{INS} \mapsto \mathrm{a}$" in shown
    assert r"\varepsilon \mapsto \mathrm{INS}" in "\n".join(
        texts(drawn(symbolic_step(1), ("y", "z")))
    )


def test_one_changed_weight_gets_a_label_of_its_own() -> None:
    before = symbolic_step(2)
    special = Arc("B", "A", (0, 1), sympy.Symbol("special"))
    others = [a for a in before.arcs if (a.source, a.target, a.label) != ("B", "A", (0, 1))]
    after = Transducer(before.initial, before.accepting, (*others, special), before.tape_sizes)
    assert not any("special" in text for text in texts(drawn(before, ("y", "z"))))
    groups = [g for g in group_arcs(after, ("y", "z")) if g.weight == sympy.Symbol("special")]
    assert [group.label for group in groups] == [(0, 1)]
    assert only(before, ("y", "z"), "B", "A").label == ("y", "z")


def test_words_change_with_the_machine() -> None:
    """Without silent deletions a replacement is only a replacement."""
    step, identity = symbolic_step(2), identity_transducer(2)
    shown = "\n".join(texts(figure3(step, identity).axes[1]))
    assert "Replace $x$ with $x$" in shown
    assert "delete" not in shown
    assert "Insert" not in shown


def test_numbers_are_drawn_as_numbers() -> None:
    shown = texts(drawn(number_step(), ("y", "z")))
    lines = next(text for text in shown if "DEL" in text and "\n" in text).split("\n")
    assert lines == [
        r"$0.3$ $: y \mapsto \mathrm{DEL}$  $(y \neq \mathrm{DEL})$",
        r"$0.5$ $: y \mapsto y$  $(y \mathrm{regular})$",
        r"$0.2$ $: y \mapsto z$  $(y \mathrm{regular}, z \mathrm{regular}, y \neq z)$",
        "and 1 more",
    ]
    assert shown != texts(drawn(number_step(keep=0.6), ("y", "z")))


# ---------------------------------------------------------------- groups


def only(machine: Transducer, variables: tuple[str, ...], source: Any, target: Any) -> ArcGroup:
    groups = [g for g in group_arcs(machine, variables) if (g.source, g.target) == (source, target)]
    assert len(groups) == 1
    return groups[0]


@pytest.mark.parametrize("vocab_size", [1, 2, 4])
def test_groups_do_not_depend_on_the_vocabulary(vocab_size: int) -> None:
    jump, step = symbolic_jump(vocab_size), symbolic_step(vocab_size)
    machine = compose(jump, step).marginalize(1)
    names = TokenNames(vocab_size)
    written = {
        (g.source, g.target): weight_formula(g, names).replace(r"\,", "")
        for g in group_arcs(machine, ("x", "z"))
    }
    assert len(written) == 8
    assert written[("A", "B"), ("A", "A")] == r"[\overline{\alpha}_{t-1}^{\top}Q_t]_{z}"
    x = r"\mathrm{a}" if vocab_size == 1 else "x"
    assert written[("B", "B"), ("A", "A")] == rf"[\overline{{Q}}_{{t-1}}Q_t]_{{{x}z}}"


def test_groups_stand_for_all_arcs() -> None:
    machine = derive_jump(symbolic_jump(3), symbolic_step(3))
    groups = group_arcs(machine, ("x", "z"))
    sizes = [prod(len(tokens) for tokens in group.ranges.values()) for group in groups]
    assert sum(sizes) == len(machine.arcs)


def test_equal_and_different_tokens_are_seen() -> None:
    assert only(identity_transducer(3), ("x", "y"), "B", "A").label == ("x", "x")
    arcs = [Arc("s", "s", (x, y), 0.1 if x != y else 0.7) for x in range(3) for y in range(3)]
    machine = Transducer("s", frozenset("s"), tuple(arcs), (3, 3))
    kept, changed = sorted(group_arcs(machine, ("x", "y")), key=lambda g: g.different)
    assert kept.label == ("x", "x")
    assert changed.label == ("x", "y")
    assert conditions(machine, changed) == r"$(x \neq y)$"


def test_labels_that_are_no_combination_are_listed_one_by_one() -> None:
    arcs = [Arc("s", "s", label, 0.1) for label in [(0, 0), (0, 1), (1, 1)]]
    machine = Transducer("s", frozenset("s"), tuple(arcs), (3, 3))
    assert {g.label for g in group_arcs(machine, ("x", "y"))} == {(0, 0), (0, 1), (1, 1)}


def test_sums_are_folded_only_where_one_token_varies() -> None:
    v, m = sympy.IndexedBase("v"), sympy.IndexedBase("M")
    bound = sympy.Symbol("bound")
    folded = fold_sums(v[0] * m[0, 1] + v[1] * m[1, 1] + v[2] * m[2, 1])
    assert folded == TokenSum(v[bound] * m[bound, 1], 0, 1, 2)
    assert fold_sums(1 - v[0] - v[1]) == 1 - TokenSum(v[bound], 0, 1)
    crossed = v[0] * m[1, 0] + v[1] * m[0, 0]
    assert fold_sums(crossed) == crossed


def test_a_sum_over_some_tokens_names_them() -> None:
    v, m = sympy.IndexedBase("v"), sympy.IndexedBase("M")
    names = TokenNames(3)

    def written(weight: Any) -> str:
        group = ArcGroup("p", "q", (EPSILON,), fold_sums(weight), {})
        return weight_formula(group, names).replace(r"\,", "")

    assert written(v[0] + v[2]) == r"\Sigma_{y \in \{\mathrm{a}, \mathrm{c}\}}[v]_{y}"
    assert written(sum(v[i] for i in range(3))) == r"\Sigma_{y\ \mathrm{regular}}[v]_{y}"
    assert written(sum(v[i] for i in range(4))) == r"\Sigma_{y \neq \mathrm{DEL}}[v]_{y}"
    some = v[0] * m[0, 1] + v[2] * m[2, 1]
    assert written(some) == (
        r"\Sigma_{y \in \{\mathrm{a}, \mathrm{c}\}}[v]_{y} \cdot [M]_{y\mathrm{b}}"
    )
    assert written(1 / (1 - v[0]) ** 2) == r"\dfrac{1}{(1 - [v]_{\mathrm{a}})^{2}}"
    assert written(-v[0] * v[1]) == r"-[v]_{\mathrm{a}} \cdot [v]_{\mathrm{b}}"


def test_one_name_for_each_tape_is_needed() -> None:
    with pytest.raises(ValueError, match="got 1 names for 2 tapes"):
        group_arcs(symbolic_step(1), ("x",))


def test_large_vocabularies_are_numbered() -> None:
    assert TokenNames(30).math(29) == r"\mathrm{29}"
    assert TokenNames(26).math(25) == r"\mathrm{z}"


def test_lines_for_one_group() -> None:
    machine = symbolic_step(2)
    group = only(machine, ("y", "z"), "B", "A")
    assert formula_lines(machine, group)[1] == r"$:\ y \mapsto z$"
    assert word_lines(machine, group, tape_names=TAPE_NAMES) == ["Replace $y$ with $z$"]


# ---------------------------------------------------------------- looks

FIGURES = {
    "figure3": figure3,
    "figure5": figure5,
    "figure6": figure6,
    "figure5 in numbers": lambda: figure5(
        number_step(), derive_jump(identity_transducer(2), number_step())
    ),
}


def extents(figure: Figure) -> list[tuple[str, Bbox]]:
    renderer = FigureCanvasAgg(figure).get_renderer()
    figure.draw(renderer)
    found = figure.findobj(lambda artist: isinstance(artist, Text) and artist.get_text() != "")
    return [(text.get_text(), text.get_window_extent(renderer)) for text in found]


@pytest.mark.parametrize("name", FIGURES)
def test_no_text_covers_another_or_leaves_the_figure(name: str) -> None:
    figure = FIGURES[name]()
    boxes = extents(figure)
    page = figure.bbox
    for text, box in boxes:
        assert page.x0 <= box.x0 < box.x1 <= page.x1, text
        assert page.y0 <= box.y0 < box.y1 <= page.y1, text
    for (text, box), (other_text, other) in combinations(boxes, 2):
        assert not box.overlaps(other), (text, other_text)


def shaft(arrow: FancyArrowPatch) -> Path:
    """The line of an arrow in pixels, without its head, which is a path of its own."""
    path = arrow.get_transform().transform_path(arrow.get_path())
    end = list(path.codes).index(Path.MOVETO, 1)
    return Path(path.vertices[:end], path.codes[:end])


@pytest.mark.parametrize("name", ["figure3", "figure5", "figure6"])
def test_no_arrow_crosses_a_text(name: str) -> None:
    figure = FIGURES[name]()
    renderer = FigureCanvasAgg(figure).get_renderer()
    figure.draw(renderer)
    for axis in figure.axes:
        labels = [(t.get_text(), t.get_window_extent(renderer)) for t in axis.texts]
        for arrow in (p for p in axis.patches if isinstance(p, FancyArrowPatch)):
            curve = shaft(arrow)
            for text, box in labels:
                assert not curve.intersects_bbox(box, filled=False), text


@pytest.mark.parametrize("kind", ["png", "svg"])
def test_figures_are_saved_without_pyplot(kind: str) -> None:
    figure = figure5()
    assert figure.canvas.manager is None, "pyplot would manage it"
    assert figure.get_facecolor() == (1.0, 1.0, 1.0, 1.0)
    saved = BytesIO()
    figure.savefig(saved, format=kind, dpi=40)
    assert {"png": b"\x89PNG", "svg": b"<svg"}[kind] in saved.getvalue()[:1000]
