"""A forward process of your own: typing errors, with keys that are hit beside the right one.

python examples/own_forward_process.py "the quick brown fox" --seed 3
"""

import argparse

import torch
from rich.console import Console

import indel
from indel.drawing.terminal import render_chain
from indel.process import corrupt, corrupt_chain, log_prob, most_likely_edits


def typing_errors(vocabulary: indel.CharacterVocabulary, steps: int) -> indel.Schedule:
    """Few deletions and inserts, slips to neighboring keys; the last step deletes everything.

    A process must end in nothing but deletion marks: from there the model starts.
    """
    keys = indel.NeighborTransition.qwerty(vocabulary.characters, prob_keep=0.95)
    typed = indel.Step(insert=0.03, delete=0.03, transition=keys)
    end = indel.Step(insert=0.0, delete=1.0, transition=keys)
    return indel.Schedule([*([typed] * (steps - 1)), end])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("text", nargs="?", default="the quick brown fox")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()

    vocabulary = indel.CharacterVocabulary("abcdefghijklmnopqrstuvwxyz ")
    schedule = typing_errors(vocabulary, steps=6)
    x_0 = indel.Batch.from_lists([vocabulary.encode(options.text)])

    # One chain, step by step.
    noise = torch.Generator().manual_seed(options.seed)
    chain = corrupt_chain(schedule, x_0, generator=noise)
    Console(soft_wrap=True).print(render_chain(chain, vocabulary, width=90, marks=True))

    # One jump of three steps at once, and exact answers about it.
    x_3, edits = corrupt(schedule, x_0, t=3, generator=noise)
    print("\nthree steps at once:", " ".join(map(vocabulary.symbol, x_3.to_lists()[0])))
    print("each token comes from", edits.source[0].tolist(), "(−1: inserted)")
    print(f"log q(x_3 | x_0), over all edits: {log_prob(schedule, x_0, x_3, t=3).item():.2f} nats")
    guess = most_likely_edits(schedule, x_0, x_3, t=3)
    print("seen from outside, most likely", guess.source[0].tolist())


if __name__ == "__main__":
    main()
