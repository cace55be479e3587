"""Which tokens of two strings were kept, replaced, inserted and deleted."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

from indel.drawing.terminal import Fate
from indel.vocabularies.smiles import is_atom, smiles_tokens


def fates(before: Sequence[str], after: Sequence[str]) -> tuple[list[Fate], list[Fate]]:
    """What became of each token of the first sequence, and what each of the second is.

    By a shortest way to insert, delete and replace tokens; what is kept comes as early as it can.

    >>> lost, new = fates(["C", "C", "O"], ["C", "N", "C", "O"])
    >>> "".join(each.value for each in lost), "".join(each.value for each in new)
    ('|||', '|+||')
    """
    rows, columns = len(before), len(after)
    # cost[i][j]: how many edits make before[i:] into after[j:].
    cost = [[0] * (columns + 1) for _ in range(rows + 1)]
    for i in range(rows, -1, -1):
        for j in range(columns, -1, -1):
            if i == rows or j == columns:
                cost[i][j] = rows - i + columns - j
                continue
            same = before[i] == after[j]
            cost[i][j] = min(
                cost[i + 1][j + 1] + (not same), cost[i + 1][j] + 1, cost[i][j + 1] + 1
            )
    old, new = [Fate.DELETED] * rows, [Fate.INSERTED] * columns
    i = j = 0
    while i < rows and j < columns:
        same = before[i] == after[j]
        if cost[i][j] == cost[i + 1][j + 1] + (not same):
            old[i] = new[j] = Fate.KEPT if same else Fate.REPLACED
            i, j = i + 1, j + 1
        elif cost[i][j] == cost[i + 1][j] + 1:
            i += 1
        else:
            j += 1
    return old, new


def atom_fates(smiles: str, of_characters: Sequence[Fate]) -> list[Fate]:
    """The fate of each atom, in the order of the string, by that of its first character.

    >>> kept, new = Fate.KEPT, Fate.INSERTED
    >>> [each.name for each in atom_fates("C(Cl)N", [kept, kept, new, new, kept, kept])]
    ['KEPT', 'INSERTED', 'KEPT']
    """
    tokens = smiles_tokens(smiles)
    starts = accumulate(map(len, tokens), initial=0)
    return [
        of_characters[start] for token, start in zip(tokens, starts, strict=False) if is_atom(token)
    ]


def changed_atoms(before: str, after: str) -> tuple[list[Fate], list[Fate]]:
    """The fates of the atoms of two strings, one of which became the other."""
    tokens = smiles_tokens(before), smiles_tokens(after)
    old, new = (
        [fate for token, fate in zip(row, found, strict=True) if is_atom(token)]
        for row, found in zip(tokens, fates(*tokens), strict=True)
    )
    return old, new
