"""Which bonds a SMILES string still has to make, so that it can end as a molecule.

Three things decide that beside its rings and branches: no atom makes more bonds than its valence,
no two atoms are bonded twice, and aromatic rings have a Kekulé structure, in which each carbon has
one double bond. Where the double bonds lie is not written, so a string can be read in several ways:
what is remembered of it is all of them (`Readings`), each with the atoms that are not done yet.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, NamedTuple

from indel.vocabularies.smiles import OpenStructure, is_atom

_ORDERS = {"-": 1, "/": 1, "\\": 1, "~": 1, "=": 2, "#": 3, "$": 4}
_VALENCES = {"O": 2, "N": 3, "B": 3, "C": 4, "P": 5, "S": 6} | dict.fromkeys(
    ("F", "Cl", "Br", "I", "[H]"), 1
)
_ANY = 8
"""Bonds of an atom that is not known here."""


class Atom(NamedTuple):
    """What an atom can still do.

    `unpaired`: it is aromatic and needs a double bond; `paired`: it has that one; `donor`: it gives
    a pair of electrons to its ring, has single bonds alone, and needs all of them.
    """

    kind: Literal["plain", "unpaired", "paired", "donor"]
    bonds: int
    """The most bonds that it can still make; those of a plain atom count by their order."""
    rings: frozenset[str] = frozenset()
    """The rings that begin at it and are open."""

    @property
    def is_done(self) -> bool:
        """Whether it needs no further bond."""
        return self.kind in ("plain", "paired")

    def bonded(self, order: int) -> Atom | None:
        """The atom after one more bond; None if it cannot make it."""
        if self.kind == "plain":
            return self._replace(bonds=self.bonds - order) if order <= self.bonds else None
        if self.bonds == 0 or order > (2 if self.kind == "unpaired" else 1):
            return None
        kind, bonds = self.kind, self.bonds - 1
        if order == 2:
            kind = "paired"
        # The fewer different atoms, the fewer readings.
        used_up = bonds == 0 if kind == "donor" else kind == "paired" and bonds < 2
        return Atom("plain" if used_up else kind, bonds, self.rings)


class Reading(NamedTuple):
    """One way to read a string: where double bonds of aromatic rings lie is chosen."""

    atom: Atom | None
    """The last one; None at the start and after an opening parenthesis."""
    waiting: tuple[Atom, ...] = ()
    """The atoms at which branches are open."""
    rings: tuple[tuple[str, int], ...] = ()
    """The rings that are open, with the order of the bond that will close them."""
    bond: str = ""
    """The bond that was written last."""
    near: frozenset[str] = frozenset()
    """The open rings that begin at the atom to which the last one is bonded: it cannot end them."""

    def after(self, token: str) -> Iterator[Reading]:
        """The ways to read one more token."""
        if token in _ORDERS or token == ":":
            yield self._replace(bond=token)
        elif token == "(":
            if self.atom is not None:
                waiting = (*self.waiting, self.atom)
                yield Reading(None, waiting, self.rings)
        elif token == ")":
            if self.atom is not None and self.atom.is_done and self.waiting:
                *others, atom = self.waiting
                yield Reading(atom, tuple(others), self.rings)
        elif token == ".":
            if self.atom is not None and self.atom.is_done:
                yield Reading(None, self.waiting, self.rings)
        elif is_atom(token):
            for kind in _kinds(token):
                yield from self._joined(kind)
        elif self.atom is not None:
            yield from self._at_ring(token, self.atom)

    def _joined(self, new: Atom) -> Iterator[Reading]:
        """A new atom, bonded to the last one or to the one at which a branch was opened."""
        in_branch = self.atom is None and bool(self.waiting)
        parent = self.waiting[-1] if in_branch else self.atom
        if parent is None:
            yield self._replace(atom=new, bond="")
            return
        for order in self._orders(parent, new):
            before, atom = parent.bonded(order), new.bonded(order)
            if before is None or atom is None:
                continue
            if in_branch:
                waiting = (*self.waiting[:-1], before)
                yield Reading(atom, waiting, self.rings, near=before.rings)
            elif before.is_done:
                yield Reading(atom, self.waiting, self.rings, near=before.rings)

    def _at_ring(self, digit: str, atom: Atom) -> Iterator[Reading]:
        """A ring is opened or closed; an aromatic bond is a double one if both ends choose so."""
        if digit in self.near | atom.rings:
            return
        rings = dict(self.rings)
        chosen = rings.pop(digit, None)
        orders = self._orders(atom, atom)
        if chosen is not None and self.bond not in _ORDERS:
            orders = [chosen] if chosen == 1 or atom.kind == "unpaired" else []
        for order in orders:
            bonded = atom.bonded(order)
            if bonded is None:
                continue
            if chosen is None:
                atom_after = bonded._replace(rings=bonded.rings | {digit})
                still, waiting = {**rings, digit: order}, self.waiting
            else:
                atom_after, still = bonded, rings
                waiting = tuple(each._replace(rings=each.rings - {digit}) for each in self.waiting)
            rings_after = tuple(sorted(still.items()))
            yield self._replace(atom=atom_after, waiting=waiting, rings=rings_after, bond="")

    def _orders(self, one: Atom, other: Atom) -> list[int]:
        if self.bond in _ORDERS:
            return [_ORDERS[self.bond]]
        return [1, 2] if one.kind == other.kind == "unpaired" else [1]


class Readings(frozenset[Reading]):
    """All ways to read a string."""

    def after(self, token: str) -> Readings | OpenStructure:
        """The ways to read one more token; where there is none, what is open.

        >>> [reading.atom.bonds for reading in START.after("O").after("=").after("C")]
        [2]
        >>> START.after("F").after("=").after("C")
        OpenStructure(rings=frozenset(), branches=0)
        """
        found = Readings(new for reading in self for new in reading.after(token))
        return found or self.open.after(token)

    @property
    def open(self) -> OpenStructure:
        """Rings and branches that are open, in whichever way it is read."""
        reading = next(iter(self))
        return OpenStructure(frozenset(dict(reading.rings)), len(reading.waiting))

    @property
    def may_end(self) -> bool:
        """Whether the string is a molecule as far as bonds go."""
        return any(
            each.atom is not None and each.atom.is_done and not each.waiting and not each.rings
            for each in self
        )


START = Readings([Reading(None)])


def remembered_after(memory: Readings | OpenStructure, token: str) -> Readings | OpenStructure:
    """What is remembered after one more token.

    Where only rings and branches are remembered, bonds are again from an atom on that follows when
    nothing is open.
    """
    found = memory.after(token)
    if isinstance(memory, Readings) or found != OpenStructure() or not is_atom(token):
        return found
    bonded = (kind.bonded(order) for kind in _kinds(token) for order in (1, 2))
    return Readings(Reading(atom) for atom in bonded if atom is not None)


def open_structure(memory: Readings | OpenStructure) -> OpenStructure:
    """What is remembered of rings and branches alone."""
    return memory.open if isinstance(memory, Readings) else memory


def _kinds(token: str) -> list[Atom]:
    """What a new atom can be."""
    if token in ("c", "[c]"):
        return [Atom("unpaired", 3)]
    if token in ("n", "p"):
        return [Atom("unpaired", 2), Atom("donor", 3)]
    if token in ("o", "s", "[nH]", "[se]"):
        return [Atom("donor", 2)]
    in_brackets = token[1:].lstrip("0123456789") if token[0] == "[" else token
    if in_brackets[0].islower():
        return [Atom("unpaired", 3), Atom("donor", 2), Atom("donor", 3)]
    return [Atom("plain", _VALENCES.get(token, _ANY))]
