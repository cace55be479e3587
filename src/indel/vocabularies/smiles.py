"""SMILES, molecules as text: its atoms, bonds and rings, and a vocabulary of these."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, SupportsIndex

from indel.vocabularies.base import Vocabulary
from indel.vocabularies.characters import CharacterVocabulary

_TOKEN = re.compile(
    r"\[[^\[\]]+\]"  # an atom in brackets, with its charge, hydrogens and chirality
    r"|Br|Cl|[BCFINOPSbcnops*]"  # an atom without
    r"|%\d\d|\d"  # a ring that opens or closes
    r"|[-=#$:~/\\.()]"  # a bond, a branch, or the end of a component
)
_ATOM = re.compile(r"\[|[A-Za-z*]")
_MOSES = (
    *("#", "(", ")", "-", "1", "2", "3", "4", "5", "6", "="),
    *("Br", "C", "Cl", "F", "N", "O", "S", "[H]", "[nH]", "c", "n", "o", "s"),
)


def smiles_tokens(smiles: str) -> list[str]:
    """The atoms, bonds, rings and parentheses of a SMILES string, or of a part of one.

    An atom in brackets is one token. What is no token is an error that names its place.

    >>> smiles_tokens("Cc1[nH]c(Br)cc1[C@@H](N)Cl")
    ['C', 'c', '1', '[nH]', 'c', '(', 'Br', ')', 'c', 'c', '1', '[C@@H]', '(', 'N', ')', 'Cl']
    """
    tokens: list[str] = _TOKEN.findall(smiles)
    if sum(map(len, tokens)) == len(smiles):
        return tokens
    place = 0
    while found := _TOKEN.match(smiles, place):
        place = found.end()
    sign = smiles[place]
    if sign == "[":
        reason = "is not closed by ]" if "]" not in smiles[place:] else "begins no atom"
    else:
        reason = f"(U+{ord(sign):04X}) begins no atom, bond or ring of SMILES"
    raise ValueError(f"{sign!r} at position {place} {reason}")


def is_atom(token: str) -> bool:
    """Whether a token of SMILES is an atom.

    >>> [token for token in smiles_tokens("C1=[nH]%10") if is_atom(token)]
    ['C', '[nH]']
    """
    return _ATOM.match(token) is not None


class OpenStructure(NamedTuple):
    """What has begun in a SMILES string and has to end: all that its grammar remembers."""

    rings: frozenset[str] = frozenset()
    branches: int = 0

    def after(self, token: str) -> OpenStructure:
        """What is open after one more token.

        >>> OpenStructure().after("C").after("1").after("(")
        OpenStructure(rings=frozenset({'1'}), branches=1)
        """
        if token == "(":
            return self._replace(branches=self.branches + 1)
        if token == ")":
            return self._replace(branches=self.branches - 1)
        if token.removeprefix("%").isdecimal():
            return self._replace(rings=self.rings ^ {token})
        return self


def syntax_problem(smiles: str) -> str | None:
    """What is wrong with a string before any chemistry: signs, parentheses, rings; None: nothing.

    >>> syntax_problem("C1CC(C"), syntax_problem("CC)C"), syntax_problem("C1CC1")
    ("'(' at position 4 is not closed", "')' at position 2 closes nothing", None)
    """
    try:
        tokens = smiles_tokens(smiles)
    except ValueError as error:
        return str(error)
    branches: list[int] = []
    rings: dict[int, int] = {}
    place = 0
    for token in tokens:
        if token == "(":
            branches.append(place)
        elif token == ")" and not branches:
            return f"')' at position {place} closes nothing"
        elif token == ")":
            branches.pop()
        elif (ring := token.removeprefix("%")).isdecimal() and rings.pop(int(ring), None) is None:
            rings[int(ring)] = place
        place += len(token)
    if branches:
        return f"'(' at position {branches[-1]} is not closed"
    if rings:
        number, where = next(iter(rings.items()))
        return f"ring {number} at position {where} is not closed"
    return None


@dataclass(frozen=True)
class SmilesVocabulary(Vocabulary):
    """One token per atom, bond, ring number or parenthesis of SMILES, in the order given.

    >>> SmilesVocabulary(["C", "Cl", "=", "O"]).encode("ClC=O")
    [1, 0, 2, 3]
    """

    tokens: tuple[str, ...]

    def __init__(self, tokens: Iterable[str]) -> None:
        if isinstance(tokens, str) or not isinstance(tokens, Iterable):
            raise TypeError(f"tokens must be a list of SMILES tokens, got {tokens!r:.40}")
        given = tuple(tokens)
        if not given:
            raise ValueError("a vocabulary of SMILES needs at least one token")
        for place, token in enumerate(given):
            if smiles_tokens(token) != [token]:
                raise ValueError(f"token {place} must be one token of SMILES, got {token!r}")
        if len(set(given)) != len(given):
            raise ValueError("tokens must be different from each other")
        object.__setattr__(self, "tokens", given)

    @classmethod
    def moses(cls) -> SmilesVocabulary:
        """The 24 tokens of the molecules of MOSES."""
        return cls(_MOSES)

    @classmethod
    def found(cls, molecules: Iterable[str]) -> SmilesVocabulary:
        """The tokens that occur, sorted.

        >>> SmilesVocabulary.found(["CCl", "C=O"]).tokens
        ('=', 'C', 'Cl', 'O')
        """
        return cls(sorted({token for smiles in molecules for token in smiles_tokens(smiles)}))

    @property
    def size(self) -> int:
        """The number of tokens."""
        return len(self.tokens)

    @cached_property
    def _ids(self) -> dict[str, int]:
        return {token: number for number, token in enumerate(self.tokens)}

    def encode(self, smiles: str | Iterable[SupportsIndex], /) -> list[int]:
        """The id of each token; one that is not in the vocabulary is an error."""
        if not isinstance(smiles, str):
            raise TypeError(f"expected SMILES (str), got {type(smiles).__name__}")
        tokens = smiles_tokens(smiles)
        try:
            return [self._ids[token] for token in tokens]
        except KeyError as error:
            (unknown,) = error.args
        place = sum(map(len, tokens[: tokens.index(unknown)]))
        known = " ".join(self.tokens[:64]) + (" …" if self.size > 64 else "")
        raise ValueError(
            f"{unknown!r} at position {place} is not in the vocabulary; "
            f"allowed are the {self.size} tokens {known}"
        )

    def decode(self, ids: Iterable[SupportsIndex]) -> str:
        """The SMILES string that regular tokens spell; it need not be a molecule."""
        return "".join([self.tokens[token] for token in self._regular(ids)])

    def to_dict(self) -> dict[str, Any]:
        """The kind and the tokens."""
        return {"kind": "smiles", "tokens": list(self.tokens)}

    def _regular_symbol(self, token: int) -> str:
        return self.tokens[token]


def spells_smiles(vocabulary: Vocabulary) -> bool:
    """Whether a model with this vocabulary may be one of molecules.

    >>> spells_smiles(SmilesVocabulary.moses()), spells_smiles(CharacterVocabulary.text8())
    (True, False)
    """
    if isinstance(vocabulary, CharacterVocabulary):
        return set("C1()=") <= set(vocabulary.characters)
    return isinstance(vocabulary, SmilesVocabulary)
