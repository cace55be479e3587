"""Mend a badly typed text, see how sure each correction is, and ask what an edit is worth.

python examples/repair_and_score.py "I recieved teh pakage yesturday"
"""

import argparse

import indel


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("text", nargs="?", default="I recieved teh pakage yesturday, thnak you.")
    options = parser.parse_args()

    # The model knows what q does to text; the words it has seen say which texts are likely.
    mended = indel.repair(options.text)
    print(mended.text)
    for correction in mended.corrections:
        others = [choice.text for choice in correction.choices[1:3]]
        print(
            f"  {correction.before} → {correction.after}  ({correction.probability:.0%}"
            + (f"; or {', '.join(others)})" if others else ")")
        )
    for doubt in mended.doubts:
        print(f"  {doubt.before}? left as it stands; perhaps {doubt.after}")

    # How many nats an edit gains or costs under the model: below 0, the model prefers the edit.
    model = indel.load("text8")
    before = ["the histroy of the city", "the history of the city"]
    after = ["the history of the city", "the mystery of the city"]
    for new, old, score in zip(
        after, before, indel.score_edits(model, after, before, chains=4, num_times=8), strict=True
    ):
        change, error = score.difference
        kept = sum(place >= 0 for place in score.alignment.source)
        print(f"{old} → {new}: {change:+.1f} ± {error:.1f} nats, {kept} letters of {len(old)} kept")


if __name__ == "__main__":
    main()
