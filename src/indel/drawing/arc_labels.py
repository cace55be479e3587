"""What is written at an arrow: the formula of a group of arcs, or what it does in words.

Everything is matplotlib mathtext: no LaTeX installation is needed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from string import ascii_lowercase
from typing import TypeAlias

import sympy

from indel.drawing.arc_groups import BOUND, ArcGroup, Entry, Expression, TokenSum
from indel.process.transducers import EPSILON, Transducer

# The lines of text at an arrow; the drawing joins them where there is room.
Describe: TypeAlias = Callable[[Transducer, ArcGroup], list[str]]


def formula_lines(transducer: Transducer, group: ArcGroup) -> list[str]:
    """The weight and the label, "[Q_t]_{yz}" and ": y ↦ z".

    Paper: Fig. 5, Fig. 6
    """
    names = TokenNames.of(transducer)
    return [f"${weight_formula(group, names)}$", f"$:\\ {_label_formula(group.label, names)}$"]


def word_lines(
    transducer: Transducer, group: ArcGroup, *, tape_names: Sequence[str], probability: bool = False
) -> list[str]:
    """What the arcs do, "Insert y," and "then replace y with z", with the probability if asked for.

    Paper: Fig. 3
    """
    names = TokenNames.of(transducer)
    silent = set(group.label) == {EPSILON}
    lines = _stop(group, tape_names) if silent else _moves(transducer, group, names)
    if probability and group.weight != 1:
        lines.append(f"with prob. ${weight_formula(group, names)}$")
    return lines


@dataclass(frozen=True)
class TokenNames:
    """How tokens are written: a, b, c, … (or 0, 1, 2, …), INS, DEL; variables as themselves."""

    regular: int

    @classmethod
    def of(cls, transducer: Transducer) -> TokenNames:
        """The noisy tapes carry INS and DEL besides the regular tokens."""
        return cls(max(transducer.tape_sizes) - 2)

    @property
    def insert(self) -> int:
        """INS."""
        return self.regular

    @property
    def delete(self) -> int:
        """DEL."""
        return self.regular + 1

    def math(self, entry: Entry | Expression) -> str:
        """A token or variable inside a formula."""
        if entry is EPSILON:
            return r"\varepsilon"
        if entry == self.insert:
            return r"\mathrm{INS}"
        if entry == self.delete:
            return r"\mathrm{DEL}"
        if not isinstance(entry, int | sympy.Integer):
            return str(entry)
        letters = self.regular <= len(ascii_lowercase)
        return rf"\mathrm{{{ascii_lowercase[int(entry)] if letters else entry}}}"

    def text(self, entry: Entry) -> str:
        """A token or variable in a sentence."""
        return f"${self.math(entry)}$"

    def condition(self, variable: str, tokens: frozenset[int], size: int) -> str:
        """Which tokens a variable stands for, nothing if all of `size` tokens."""
        missing = set(range(size)) - tokens
        if not missing:
            return ""
        if len(missing) == 1:
            return rf"{variable} \neq {self.math(missing.pop())}"
        if tokens == set(range(self.regular)):
            return rf"{variable}\ \mathrm{{regular}}"
        return rf"{variable} \in \{{{', '.join(self.math(token) for token in sorted(tokens))}\}}"


def conditions(transducer: Transducer, group: ArcGroup) -> str:
    """Which tokens the variables of a group stand for, "(y ≠ DEL, z ≠ INS)", nothing if all."""
    names = TokenNames.of(transducer)
    found = [
        names.condition(name, tokens, transducer.tape_sizes[group.label.index(name)])
        for name, tokens in group.ranges.items()
    ]
    if group.different:
        found.append(r" \neq ".join(group.ranges))
    return f"$({', '.join(filter(None, found))})$" if any(found) else ""


def weight_formula(group: ArcGroup, names: TokenNames) -> str:
    """The weight as mathtext, with 1 and positive terms first and fractions as fractions."""
    taken = {entry for entry in group.label if isinstance(entry, str)}
    bound = next(name for name in ("y", "u", "v", "w") if name not in taken)
    return _Formula(names, bound).write(group.weight)


@dataclass(frozen=True)
class _Formula:
    names: TokenNames
    bound: str

    def write(self, part: Expression) -> str:
        if part.is_Add:
            return self._sum(part)
        if part.is_Mul:
            return self._product(part)
        if part.is_Pow:
            return self._power(part)
        if isinstance(part, TokenSum):
            return self._token_sum(part)
        if isinstance(part, sympy.Indexed):
            return rf"[{part.base}]_{{{self._indices(part.indices)}}}"
        return f"{float(part):.3g}" if part.is_Float else str(part)

    def _sum(self, part: Expression) -> str:
        # "1 − α", not "−α + 1"; a plain term before a fraction, as in Eq. (11).
        ordered = sorted(
            part.args,
            key=lambda term: (
                term.could_extract_minus_sign(),
                not term.is_number,
                sympy.count_ops(term),
            ),
        )
        written = self.write(ordered[0])
        for term in ordered[1:]:
            negative = term.could_extract_minus_sign()
            written += f" - {self.write(-term)}" if negative else f" + {self.write(term)}"
        return written

    def _product(self, part: Expression) -> str:
        if part.could_extract_minus_sign():
            return f"-{self.write(-part)}"
        above, below = part.as_numer_denom()
        if below != 1:
            return self._fraction(above, below)
        factors = sorted(part.args, key=self._factor_order)
        return r" \cdot ".join(self._factor(factor) for factor in factors)

    def _fraction(self, above: Expression, below: Expression) -> str:
        """The vectors and matrices of the numerator stay beside the fraction, as in Eq. (10)."""
        factors = sympy.Mul.make_args(above)
        beside = [factor for factor in factors if isinstance(factor, TokenSum)]
        top = sympy.Mul(*(factor for factor in factors if factor not in beside))
        written = rf"\dfrac{{{self.write(top)}}}{{{self.write(below)}}}"
        return r"\,".join([written, *map(self._factor, beside)])

    def _power(self, part: Expression) -> str:
        if part.exp.is_negative:
            return rf"\dfrac{{1}}{{{self.write(1 / part)}}}"
        return rf"{self._factor(part.base)}^{{{self.write(part.exp)}}}"

    def _factor(self, part: Expression) -> str:
        return f"({self.write(part)})" if part.is_Add else self.write(part)

    def _factor_order(self, factor: Expression) -> tuple[bool, str, int]:
        """Numbers and scalars, then v_x before M_xy before M_yz."""
        indexed = factor.atoms(sympy.Indexed)
        first = min((self._index(part.indices[0]) for part in indexed), default="")
        return bool(indexed), first, sum(len(part.indices) for part in indexed)

    def _token_sum(self, part: Expression) -> str:
        term, *values = part.args
        tokens = frozenset(int(value) for value in values)
        size = self.names.regular + 2
        # Row DEL of every Q_t is zero, so a matrix product may or may not name it.
        if set(range(size)) - tokens <= {self.names.delete}:
            product = self._matrix_product(term)
            if product:
                return product
        condition = self.names.condition(self.bound, tokens, size)
        return rf"\Sigma_{{{condition or self.bound}}}\,{self._factor(term)}"

    def _matrix_product(self, term: Expression) -> str:
        """Σ_y v_y M_{yz} as [vᵀM]_z and Σ_y L_{xy} M_{yz} as [L M]_{xz}, otherwise nothing."""
        factors = sorted(term.atoms(sympy.Indexed), key=lambda f: f.indices[0] == BOUND)
        factors.sort(key=lambda f: f.indices[-1] != BOUND)
        if sympy.Mul(*factors) != term or len(factors) != 2:
            return ""
        left, right = factors
        if left.indices[-1] != BOUND or right.indices[0] != BOUND or len(right.indices) != 2:
            return ""
        transpose = r"^{\top}" if len(left.indices) == 1 else ""
        free = self._indices((*left.indices[:-1], *right.indices[1:]))
        return rf"[{left.base}{transpose}\,{right.base}]_{{{free}}}"

    def _indices(self, indices: Sequence[Expression]) -> str:
        return r"\,".join(self._index(index) for index in indices)

    def _index(self, index: Expression) -> str:
        return self.bound if index == BOUND else self.names.math(index)


def _label_formula(label: tuple[Entry, ...], names: TokenNames) -> str:
    return r" \mapsto ".join(names.math(entry) for entry in label)


def _stop(group: ArcGroup, tape_names: Sequence[str]) -> list[str]:
    """An all-ε arc ends the inserts of the machine whose part of the state it changes."""
    if not (isinstance(group.source, tuple) and isinstance(group.target, tuple)):
        return ["Stop inserting"]
    parts = zip(group.source, group.target, tape_names[1:], strict=True)
    stopped = [name for before, after, name in parts if before != after]
    return [f"Stop inserting for ${', '.join(stopped)}$"]


def _moves(transducer: Transducer, group: ArcGroup, names: TokenNames) -> list[str]:
    """What happens from each tape to the next, one line for each."""
    lines: list[str] = []
    for tape, (old, new) in enumerate(pairwise(group.label)):
        phrase = _phrase(group, old, new, transducer.tape_sizes[tape : tape + 2], names)
        if phrase and lines:
            lines[-1] += ","
            phrase = _then(phrase, names.text(old) if new is EPSILON else None)
        lines += [phrase] if phrase else []
        # As in the paper, said only where y is any token, though Q̄[x, DEL] holds such pairs too.
        replaced = tape == 0 and EPSILON not in (old, new) and new != names.delete
        if replaced and _deletes_silently(transducer, names.regular):
            lines.append(f"(or delete {names.text(old)} and insert {names.text(new)})")
    return lines


def _phrase(
    group: ArcGroup, old: Entry, new: Entry, sizes: tuple[int, ...], names: TokenNames
) -> str:
    """What happens between two neighbouring tapes."""

    def one_sided(entry: Entry, size: int) -> str:
        every = isinstance(entry, str) and len(group.ranges[entry]) == size
        alone = sum(other is not EPSILON for other in group.label) == 1
        return "any token" if every and alone else names.text(entry)

    if old is EPSILON and new is EPSILON:
        return ""
    if old is EPSILON:
        return f"Insert {one_sided(new, sizes[1])}"
    if new is EPSILON:
        return f"Delete {one_sided(old, sizes[0])}"
    return f"Replace {names.text(old)} with {names.text(new)}"


def _then(phrase: str, deleted: str | None) -> str:
    phrase = phrase[0].lower() + phrase[1:]
    return f"then {phrase.replace(deleted, 'it') if deleted else phrase}"


def _deletes_silently(transducer: Transducer, regular: int) -> bool:
    """Only then may a replacement be a deletion and an insertion in truth."""
    reads = (arc.label[:2] for arc in transducer.arcs)
    return any(old is not EPSILON and old < regular and new is EPSILON for old, new in reads)
