"""Train on your own strings: here made-up DNA with a motif; samples, a likelihood, a saved model.

python examples/train_on_strings.py              about a minute on one core
python examples/train_on_strings.py --steps 20   a try
"""

import argparse
import random
from pathlib import Path

import indel

MOTIF = "TATAAT"


def made_up_dna(count: int, seed: int = 0) -> list[str]:
    """Strings of different lengths; each has the motif somewhere, with few G and C after it."""
    draw = random.Random(seed)
    before = ["".join(draw.choices("ACGT", k=draw.randint(2, 8))) for _ in range(count)]
    after = ["".join(draw.choices("AT", k=draw.randint(2, 8))) for _ in range(count)]
    return [start + MOTIF + end for start, end in zip(before, after, strict=True)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=600)
    parser.add_argument("--out", type=Path, default=Path("runs/dna"))
    options = parser.parse_args()

    # Any list of strings; a twentieth each is held out for validation and for the test.
    data = indel.Sequences(made_up_dna(2_000), indel.CharacterVocabulary("ACGT"))
    # Noise in 16 steps; 0.6 of the letters are deleted and as many inserted on the way.
    schedule = indel.Schedule.paper(data.vocabulary.size, num_steps=16, rate=0.6)
    model = indel.Denoiser.from_preset("tiny", data.vocabulary, schedule, max_length=28)
    run = indel.train(model, data, options.out, steps=options.steps)

    samples = indel.generate(run.model, 100, seed=0).texts
    share = sum(MOTIF in text for text in samples) / len(samples)
    print(*samples[:5], sep="\n")
    print(f"{share:.0%} of 100 samples contain {MOTIF}")

    bound = indel.evaluate(run.model, data, split="test", progress=False).bits_per_token
    print(f"{bound.mean:.2f} ± {bound.standard_error:.2f} bits per letter; 2 bits know nothing")

    run.model.save_pretrained(options.out / "model")
    print(f"saved: indel.load({str(options.out / 'model')!r})")


if __name__ == "__main__":
    main()
