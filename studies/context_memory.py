"""What it is worth that counts of molecules remember what is open, and which bonds are missing.

python studies/context_memory.py --data FOLDER [--contexts 12000] [--molecules 500000]

A row without a memory, one with that of open rings and branches, one with that of bonds: nats per
molecule of MOSES's test part when each token is predicted from its context, and the share of
molecules among strings drawn from it. No network and no diffusion is involved.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

from indel.data import Split
from indel.data.molecules import MosesData
from indel.model.context_trees import ContextTree, Memory
from indel.molecules.chemistry import parsed
from indel.training.counting import memory_of
from indel.vocabularies.smiles import OpenStructure, SmilesVocabulary

LONGEST = 100


def nats(tree: ContextTree, rows: list[np.ndarray]) -> float:
    """Mean −log p of a sequence; what the counts rule out costs as much as one in 10⁹."""
    total = 0.0
    for row in rows:
        state = 0
        for token in row:
            total -= np.log(tree.prob[state, token] + 1e-9)
            state = tree.follow[state, token]
        total -= np.log(tree.prob[state, -1] + 1e-9)
    return total / len(rows)


def drawn(tree: ContextTree, rng: np.random.Generator) -> list[int]:
    """A sequence from the tree."""
    state, row = 0, []
    while len(row) < LONGEST:
        token = int(rng.choice(tree.prob.shape[1], p=tree.prob[state] / tree.prob[state].sum()))
        if token == tree.follow.shape[1]:
            break
        row.append(token)
        state = tree.follow[state, token]
    return row


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--contexts", type=int, default=12_000)
    parser.add_argument("--molecules", type=int, default=500_000)
    parser.add_argument("--samples", type=int, default=1000)
    given = parser.parse_args()
    data = MosesData(given.data)
    vocabulary = data.vocabulary
    assert isinstance(vocabulary, SmilesVocabulary)

    def rows(split: Split, count: int) -> list[np.ndarray]:
        batch = data.examples(0, count, split)
        lengths = batch.lengths.tolist()
        return [row[:n] for row, n in zip(batch.tokens.numpy(), lengths, strict=True)]

    training, testing = rows("train", given.molecules), rows("test", 2000)
    structure = Memory(OpenStructure(), lambda open_, token: open_.after(vocabulary.tokens[token]))
    for name, remembered in (
        ("last tokens", None),
        ("and open rings and branches", structure),
        ("and bonds that are missing", memory_of(vocabulary)),
    ):
        tree = ContextTree.fit(training, vocabulary.size, given.contexts, remembered)
        rng = np.random.default_rng(0)
        strings = [vocabulary.decode(drawn(tree, rng)) for _ in range(given.samples)]
        valid = [bool(text) and parsed(text) is not None for text in strings]
        share, error = 100 * np.mean(valid), 100 * np.std(valid) / len(valid) ** 0.5
        print(f"{name}: {len(tree.prob)} contexts, {nats(tree, testing):.2f} nats per molecule")
        print(f"  {share:.1f} ± {error:.1f} % of the strings are molecules", flush=True)


if __name__ == "__main__":
    main()
