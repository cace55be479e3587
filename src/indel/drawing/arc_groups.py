"""Parallel arcs that follow one formula, found from the arcs themselves.

A machine over K tokens has one arc "[Q_t]_{ab} : a ↦ b" for each pair of tokens. Here they become
one group "[Q_t]_{yz} : y ↦ z": a formula with a variable for each tape, kept only if it gives back
the weight of every arc that it stands for. Nothing is known in advance about the formulas.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, TypeAlias

import sympy

from indel.process.transducers import EPSILON, Label, State, Transducer

Expression: TypeAlias = Any  # sympy has no types
Entry: TypeAlias = int | str | None

# The variable of a sum over tokens, until a name is chosen that the label does not use.
BOUND = sympy.Symbol("bound")


class TokenSum(sympy.Function):  # type: ignore[misc]
    """TokenSum(term, v₁, v₂, …) = Σ_{bound ∈ {v₁, v₂, …}} term, left as it is."""


@dataclass(frozen=True)
class ArcGroup:
    """Arcs between two states whose weights are one formula in the tokens of their labels.

    A label entry is a variable, one fixed token, or EPSILON. `ranges` holds the tokens that each
    variable stands for; if `different`, two variables never stand for the same token.
    """

    source: State
    target: State
    label: tuple[Entry, ...]
    weight: Expression
    ranges: Mapping[str, frozenset[int]]
    different: bool = False


def group_arcs(transducer: Transducer, variables: Sequence[str]) -> list[ArcGroup]:
    """The arcs as few groups as possible, with one variable name for each tape."""
    if len(variables) != len(transducer.tape_sizes):
        raise ValueError(f"got {len(variables)} names for {len(transducer.tape_sizes)} tapes")
    parallel: dict[tuple[Any, ...], dict[Label, Expression]] = defaultdict(dict)
    for arc in transducer.arcs:
        shape = tuple(token is EPSILON for token in arc.label)
        weight = fold_sums(sympy.sympify(arc.weight))
        parallel[arc.source, arc.target, shape][arc.label] = weight
    return [
        group
        for (source, target, _), weights in parallel.items()
        for formula, labels in _fewest_formulas(weights, variables)
        for group in _describe(source, target, formula, labels, variables)
    ]


def fold_sums(expression: Expression) -> Expression:
    """Terms that differ in one token only become a sum.

    v_0·M_{0z} + v_1·M_{1z} + … → Σ_y v_y·M_{yz}
    """
    if expression.is_Atom or isinstance(expression, sympy.Indexed):
        return expression
    parts = [fold_sums(part) for part in expression.args]
    if not expression.is_Add:
        return expression.func(*parts)
    alike: dict[Expression, list[Expression]] = defaultdict(list)
    for part in parts:
        alike[_map_indices(part, lambda _: sympy.Integer(0))].append(part)
    return sympy.Add(*(_fold(terms) for terms in alike.values()))


def _fold(terms: list[Expression]) -> Expression:
    plain = sympy.Add(*terms)
    if len(terms) == 1 or plain.has(BOUND):
        return plain
    rows = [_indices(term) for term in terms]
    varying = [column for column in zip(*rows, strict=True) if len(set(column)) > 1]
    if not varying or any(column != varying[0] for column in varying):
        return plain
    values = varying[0]
    for term, value in zip(terms, values, strict=True):
        summand = _substitute(term, {value: BOUND})
        # The value may also stand for a token of the label; then another term tells them apart.
        if [_substitute(summand, {BOUND: v}) for v in values] == terms:
            coefficient, rest = summand.as_coeff_Mul()
            return coefficient * TokenSum(rest, *sorted(values))
    return plain


def _fewest_formulas(
    weights: dict[Label, Expression], variables: Sequence[str]
) -> list[tuple[Expression, list[Label]]]:
    """Formulas that together give all weights; greedily the one that explains most arcs first."""
    remaining = dict(weights)
    chosen = []
    while remaining:
        formulas = dict.fromkeys(
            _substitute(weight, _tokens_to_variables(label, variables))
            for label, weight in remaining.items()
        )
        explained = {
            formula: [
                label
                for label, weight in remaining.items()
                if _substitute(formula, _variables_to_entries(variables, label)) == weight
            ]
            for formula in formulas
        }
        best = max(explained, key=lambda formula: len(explained[formula]))
        chosen.append((best, explained[best]))
        remaining = {k: v for k, v in remaining.items() if k not in explained[best]}
    return chosen


def _describe(
    source: State,
    target: State,
    formula: Expression,
    labels: list[Label],
    variables: Sequence[str],
) -> list[ArcGroup]:
    """One group for all combinations of some tokens or all without repeats, otherwise one each."""
    columns = list(zip(*labels, strict=True))
    entries: list[Entry] = [
        column[0] if len(set(column)) == 1 else variables[columns.index(column)]
        for column in columns
    ]
    ranges = {
        entry: frozenset(token for token in column if token is not None)
        for entry, column in zip(entries, columns, strict=True)
        if isinstance(entry, str)
    }
    weight = _substitute(formula, _variables_to_entries(variables, entries))
    combinations = list(product(*ranges.values()))
    if len(labels) == len(combinations):
        return [ArcGroup(source, target, tuple(entries), weight, ranges)]
    places = [entries.index(name) for name in ranges]
    found = {tuple(label[place] for place in places) for label in labels}
    if found == {tokens for tokens in combinations if len(set(tokens)) == len(tokens)}:
        return [ArcGroup(source, target, tuple(entries), weight, ranges, different=True)]
    return [
        group
        for label in labels
        for group in _describe(source, target, formula, [label], variables)
    ]


def _tokens_to_variables(label: Label, variables: Sequence[str]) -> dict[Any, Expression]:
    """A token that is on two tapes is taken for the variable of the first of them."""
    pairs = list(zip(label, variables, strict=True))
    return {token: sympy.Symbol(name) for token, name in reversed(pairs) if token is not EPSILON}


def _variables_to_entries(
    variables: Sequence[str], entries: Sequence[Entry]
) -> dict[Any, Expression]:
    return {
        sympy.Symbol(name): sympy.Symbol(entry) if isinstance(entry, str) else sympy.Integer(entry)
        for name, entry in zip(variables, entries, strict=True)
        if entry is not EPSILON
    }


def _substitute(expression: Expression, values: Mapping[Any, Expression]) -> Expression:
    """Replace tokens where they are indices, and only there: the 1 in 1 − α_t is not a token."""
    return _map_indices(expression, lambda index: values.get(index, index))


def _map_indices(expression: Expression, change: Callable[[Expression], Expression]) -> Expression:
    return expression.replace(
        lambda part: isinstance(part, sympy.Indexed),
        lambda part: part.base[tuple(change(index) for index in part.indices)],
    )


def _indices(term: Expression) -> list[Expression]:
    """All indices in a term, in an order that is the same for terms of the same shape."""
    indexed = sorted(term.atoms(sympy.Indexed), key=str)
    return [index for part in indexed for index in part.indices]
