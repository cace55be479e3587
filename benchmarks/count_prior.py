"""How long the posterior of a bundled model's counts takes, in C and by torch.

python benchmarks/count_prior.py [--model text8] [--rows 32] [--repeats 7] [--most 512,2048]

Both take turns in one run; medians of process CPU time. Torch follows all contexts, C the likeliest
of them where there are many: the last column is how far the laws of the tokens' edits are apart,
half the sum of their differences, averaged over the tokens.
"""

import argparse
import itertools
import os
import statistics
import time
from datetime import UTC, datetime

import torch

import indel
from indel.model import native_passes, pruned_passes
from indel.native import SWITCH
from indel.process.corruption import corrupt

TIMES = (3, 12, 20)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", default="text8")
    parser.add_argument("--rows", type=int, default=32)
    parser.add_argument("--most", default=str(pruned_passes.MOST), help="contexts that C follows")
    parser.add_argument("--repeats", type=int, default=7)
    options = parser.parse_args()
    if not native_passes.available(torch.device("cpu")):
        raise SystemExit("there is no C compiler here: nothing to compare")
    model = indel.load(options.model).eval()
    prior = model.prior
    assert prior is not None
    tables = model.schedule.tables(torch.device("cpu"))
    weights = model.edit_weights(tables.jump)
    text = "the history of the city begins in the year one eight four two when it was founded by"
    x_0 = indel.Batch.from_lists([model.vocabulary.encode(text)] * options.rows)
    contexts = int((prior.last >= 0).sum())
    print(
        f"{datetime.now(UTC):%Y-%m-%d}, torch {torch.__version__}, {torch.get_num_threads()} "
        f"threads, {contexts:,} contexts, {options.rows} rows\n"
    )
    print("| t | tokens | at most | torch (CPU ms) | C (CPU ms) | ratio | distance |")
    print("|---|---|---|---|---|---|---|")
    for time_of_noise, most in itertools.product(TIMES, map(int, options.most.split(","))):
        pruned_passes.MOST = most
        t = torch.full((options.rows,), time_of_noise)
        noisy = corrupt(model.schedule, x_0, t, generator=torch.Generator().manual_seed(0))
        seen = noisy.x_t.without(model.vocabulary.ins)
        seconds: dict[str, list[float]] = {"0": [], "1": []}
        guesses = {}
        for _ in range(options.repeats + 1):
            for switch, found in seconds.items():
                os.environ[SWITCH] = switch
                start = time.process_time()
                guesses[switch] = prior(tables, weights, seen, t, model.max_deletions)
                found.append(time.process_time() - start)
        torch_ms, c_ms = (1000 * statistics.median(seconds[s][1:]) for s in ("0", "1"))
        ratio = torch_ms / c_ms
        laws, others = (each.source[:, : seen.width][seen.mask].exp() for each in guesses.values())
        distance = float((laws - others).abs().sum(dim=-1).mean() / 2)
        print(
            f"| {time_of_noise} | {seen.width} | {most} | {torch_ms:.0f} | {c_ms:.0f} | "
            f"{ratio:.1f} | {distance:.4f} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
