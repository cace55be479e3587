"""Fill gaps, vary a text, and follow a reward, with the models that come with indel.

python examples/infill_and_steer.py              about a minute on one core
"""

import argparse

import indel


def shortness(texts: list[str]) -> list[float]:
    """A reward: the fewer numbers, the better."""
    return [-float(len(text.split())) for text in texts]


def shortened(text: str, most: int = 68) -> str:
    return text if len(text) <= most else f"{text[: most - 2]} …"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--particles", type=int, default=4)
    options = parser.parse_args()
    seed = options.seed

    words = indel.load("text8")
    print("the capital of {3,9} is, with what stands around it:")
    filled = indel.infill(words, "{} the capital of {3,9} is {}", seed=seed)
    before, gap, after = filled.gaps[0]
    print(f"  gap: {gap!r}, before: {shortened(before)!r}, after: {shortened(after)!r}")

    print("\nwithin one to four edits of a text, whose first twelve letters stay:")
    near = indel.mutate(words, "the history of the city", 3, edits=(1, 4), keep=[(0, 12)])
    for text, distance in zip(near.texts, near.edits.tolist(), strict=True):
        print(f"  {distance} edits: {text}")

    numbers = indel.load("arithmetic")
    print("\nnumbers that count up or down, as they come and with a reward for short ones:")
    plain = indel.generate(numbers, 1, seed=seed)
    short = indel.steer(numbers, shortness, particles=options.particles, seed=seed)
    for name, (text,) in (("as they come", plain.texts), ("short", short.texts)):
        print(f"  {name}: {-shortness([text])[0]:.0f} numbers, {shortened(text, 50)}")


if __name__ == "__main__":
    main()
