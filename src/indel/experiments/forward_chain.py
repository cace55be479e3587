"""Figure 2: a forward chain and its edit summary.

The chain is the paper's own, x_0 = abcdef to x_3; the summary is computed from it. Nothing is
trained, and scales do not differ. The paper draws the lost b and the inserted h apart; its
appendix, and our code, count such a pair as a replacement, b to h.
"""

from __future__ import annotations

from indel.batch import Batch
from indel.experiments.files import write_figure
from indel.experiments.requests import Request
from indel.vocabularies import CharacterVocabulary

LETTERS = "abcdefghij"
CHAIN = ("abcdef", "ab+cd×f", "a+×hijf+", "aghi+×f×")
"""x_0 … x_3; + is INS and × is DEL."""


def reproduce_figure2(request: Request) -> None:
    """Draw the chain and its summary.

    Paper: Fig. 2
    """
    from indel.drawing.edit_arrows import figure2

    vocabulary = CharacterVocabulary(LETTERS)
    markers = {"+": vocabulary.ins, "×": vocabulary.del_}
    chain = [
        Batch.from_lists([[markers.get(sign, LETTERS.find(sign)) for sign in state]])
        for state in CHAIN
    ]
    config = {"figure": "figure2", "chain": list(CHAIN), "INS": "+", "DEL": "×"}
    write_figure(figure2(chain, vocabulary), request.folder / "figure2", config)
