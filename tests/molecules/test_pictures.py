"""What became of atoms, and the pictures that show it."""

from __future__ import annotations

from xml.etree import ElementTree

from hypothesis import given
from hypothesis import strategies as st

from indel.drawing.terminal import Fate
from indel.levenshtein import edit_distance
from indel.molecules.lineage import atom_fates, changed_atoms, fates
from indel.molecules.pictures import COLORS, Panel, drawn, picture
from indel.molecules.relatives import panels, relatives

LETTERS = st.lists(st.sampled_from("CNO"), max_size=7)


def shown(found: list[Fate]) -> str:
    return "".join(each.value for each in found)


@given(LETTERS, LETTERS)
def test_fates_are_a_shortest_way(before: list[str], after: list[str]) -> None:
    old, new = fates(before, after)
    replaced = old.count(Fate.REPLACED)
    edits = replaced + old.count(Fate.DELETED) + new.count(Fate.INSERTED)
    assert edits == edit_distance(before, after)
    assert replaced == new.count(Fate.REPLACED)
    pairs = [
        [token for token, fate in zip(row, found, strict=True) if fate is Fate.KEPT]
        for row, found in ((before, old), (after, new))
    ]
    assert pairs[0] == pairs[1]


def test_atoms_of_two_strings() -> None:
    old, new = changed_atoms("CC(=O)Oc1ccccc1", "CC(=O)c1cc(Cl)ccc1")
    assert shown(old) == "|||×||||||"
    assert shown(new) == "||||||+|||"
    assert shown(changed_atoms("CCl", "CBr")[1]) == "|~"


def test_an_atom_of_several_characters_has_one_fate() -> None:
    marks = [Fate.KEPT] + 4 * [Fate.INSERTED] + [Fate.KEPT]
    assert shown(atom_fates("c[nH]c", marks)) == "|+|"


def tint(fate: Fate) -> str:
    """The color in the file: 45 % of it on white."""
    parts = (int(COLORS[fate][place : place + 2], 16) for place in (1, 3, 5))
    return "#" + "".join(f"{int(255 - 0.45 * (255 - part)):02X}" for part in parts)


def test_marked_atoms_have_the_colors_of_the_other_pictures() -> None:
    plain = drawn(Panel("CCO"))
    for fate in (Fate.INSERTED, Fate.DELETED, Fate.REPLACED):
        marked = drawn(Panel("CCO", atoms=[Fate.KEPT, fate, Fate.KEPT]))
        assert tint(fate) in marked
        assert tint(fate) not in plain
    assert drawn(Panel("CCO", atoms=[Fate.KEPT] * 3)) == plain
    # A hydrogen that is written is an atom of the string.
    assert tint(Fate.INSERTED) in drawn(Panel("[H]OC", atoms=[Fate.INSERTED, Fate.KEPT, Fate.KEPT]))


def test_a_picture_is_one_file_of_svg() -> None:
    strange = "C<script>alert(1)</script>&"
    svg = picture(
        [Panel("CCO", "ethanol <b>"), Panel("C1CC", "broken"), Panel(strange, strange)], 2
    )
    root = ElementTree.fromstring(svg)
    assert root.get("viewBox") == "0 0 520 472"
    assert "script" not in {element.tag.rpartition("}")[2] for element in root.iter()}
    texts = ["".join(element.itertext()) for element in root.iter() if element.tag.endswith("text")]
    assert "ethanol <b>" in texts
    assert texts.count("no molecule") == 2
    assert "C1CC" in texts


def test_relatives_are_drawn_beside_the_original() -> None:
    found = relatives("CCO", ["CCN", "CC(N"])
    assert [each.valid for each in found] == [True, False]
    assert found[0].similarity is not None
    assert 0 < found[0].similarity < 1
    shown = panels("CCO", found)
    assert [panel.smiles for panel in shown] == ["CCO", "CCN", "CCO", "CC(N"]
    assert shown[1].atoms == [Fate.KEPT, Fate.KEPT, Fate.REPLACED]
    assert shown[3].atoms == []
