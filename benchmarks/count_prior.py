"""How long the exact posterior of the bundled text8 model's counts takes, in C and by torch.

python benchmarks/count_prior.py [--rows 32] [--repeats 7]

Both take turns in one run; medians of process CPU time.
"""

import argparse
import os
import statistics
import time
from datetime import UTC, datetime

import torch

import indel
from indel.model import native_passes
from indel.process.corruption import corrupt

TIMES = (4, 12, 20)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=32)
    parser.add_argument("--repeats", type=int, default=7)
    options = parser.parse_args()
    if not native_passes.available(torch.device("cpu")):
        raise SystemExit("there is no C compiler here: nothing to compare")
    model = indel.load("text8").eval()
    prior = model.prior
    assert prior is not None
    tables = model.schedule.tables(torch.device("cpu"))
    weights = model.edit_weights(tables.jump)
    text = "the history of the city begins in the year one eight four two when it was founded by"
    x_0 = indel.Batch.from_lists([model.vocabulary.encode(text)] * options.rows)
    contexts = int((prior.last >= 0).sum())
    print(
        f"{datetime.now(UTC):%Y-%m-%d}, torch {torch.__version__}, {torch.get_num_threads()} "
        f"threads, {contexts:,} contexts, {options.rows} rows; python benchmarks/count_prior.py\n"
    )
    print("| t | tokens | torch (CPU ms) | C (CPU ms) | ratio |\n|---|---|---|---|---|")
    for time_of_noise in TIMES:
        t = torch.full((options.rows,), time_of_noise)
        noisy = corrupt(model.schedule, x_0, t, generator=torch.Generator().manual_seed(0))
        seen = noisy.x_t.without(model.vocabulary.ins)
        seconds: dict[str, list[float]] = {"0": [], "1": []}
        for _ in range(options.repeats + 1):
            for switch, found in seconds.items():
                os.environ[native_passes.SWITCH] = switch
                start = time.process_time()
                prior(tables, weights, seen, t, model.max_deletions)
                found.append(time.process_time() - start)
        torch_ms, c_ms = (1000 * statistics.median(seconds[s][1:]) for s in ("0", "1"))
        ratio = torch_ms / c_ms
        print(f"| {time_of_noise} | {seen.width} | {torch_ms:.0f} | {c_ms:.0f} | {ratio:.1f} |")


if __name__ == "__main__":
    main()
