"""What the loss costs beside the network: ratios measured in one run (`make bench`).

    python benchmarks/objective.py [--against GIT-REVISION]

With `--against`, the loss and `log_prob` of this tree and of that revision take turns, each in a
process of its own; the ratios are of process CPU time, and the values must agree.
"""

import argparse
import dataclasses
import importlib
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import torch
from process_memory import peak_megabytes

from indel import Batch, CharacterVocabulary, IntegerVocabulary, Vocabulary
from indel.data.arithmetic import ArithmeticData
from indel.model import Denoiser
from indel.model.denoiser import DenoiserOutput
from indel.model.length import LengthTable
from indel.model.reverse import ReverseStep
from indel.process import Schedule, edit_marginals, log_prob, sample_edits

try:
    from indel.bound.objective import Objective
except ModuleNotFoundError:  # a revision before there was a package `bound`, given to --against
    from indel.objective import Objective

REPEATS = 9


def median_seconds(*jobs: Callable[[], object]) -> list[float]:
    """The median time of each job, taken in turns so that a noisy machine disturbs all alike."""
    for job in jobs:
        job()
    times: list[list[float]] = [[] for _ in jobs]
    for _ in range(REPEATS):
        for job, record in zip(jobs, times, strict=True):
            start = time.perf_counter()
            job()
            record.append(time.perf_counter() - start)
    return [statistics.median(record) for record in times]


def objective_of(schedule: Schedule, limit: int | None) -> Objective:
    """At uniform times; a revision given to --against may want to be told of them."""
    if "times" not in {field.name for field in dataclasses.fields(Objective)}:
        return Objective(schedule, max_length=limit)
    module = "indel.bound.times" if "bound" in Objective.__module__ else "indel.times"
    law = next(
        each
        for name, each in vars(importlib.import_module(module)).items()
        if name in ("TimeDistribution", "TimeLaw")
    )
    return Objective(schedule, times=law.uniform(schedule.num_steps), max_length=limit)


def text8_like(rows: int, generator: torch.Generator) -> Batch:
    tokens = torch.randint(27, (rows, 118), generator=generator)
    return Batch(tokens, torch.full((rows,), 118))


def share_of_a_training_step(
    name: str, vocabulary: Vocabulary, x_0: Batch, steps: int, limit: int | None
) -> str:
    """corrupt + loss + backward to the logits, against a full training step."""
    schedule = Schedule.paper(vocabulary.size, steps, 0.6)
    generator = torch.Generator().manual_seed(0)
    denoiser = Denoiser.from_preset(
        "small", vocabulary, schedule, generator=generator, max_length=128
    )
    optimizer = torch.optim.AdamW(denoiser.parameters(), lr=1e-4)
    objective = objective_of(schedule, limit)

    def training_step() -> None:
        loss = objective(denoiser, denoiser.length, x_0, generator=generator).total.mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    def fixed_logits(x_t: Batch, t: torch.Tensor) -> DenoiserOutput:
        return DenoiserOutput(
            random_logits[0][:, : x_t.width].detach().requires_grad_(),
            random_logits[1][:, : x_t.width + 1].detach().requires_grad_(),
        )

    random_logits = [
        torch.randn(len(x_0), 320, size, generator=generator)
        for size in (vocabulary.size + 1, denoiser.max_deletions + 1)
    ]

    def loss_alone() -> None:
        loss = objective(fixed_logits, denoiser.length, x_0, generator=generator).total.mean()
        loss.backward()

    whole, part = median_seconds(training_step, loss_alone)
    what = "corrupt + loss + backward to the logits / training step"
    return f"| {name}: {what} | {part / whole:.1%} |"


def memory_ratio() -> str:
    """Peak memory of the loss against `cross_entropy` on logits of the same shape."""
    peaks = {}
    for job in ("cross_entropy", "loss"):
        run = subprocess.run(
            [sys.executable, __file__, "--job", job], capture_output=True, text=True, check=True
        )
        peaks[job] = float(run.stdout)
    ratio = peaks["loss"] / peaks["cross_entropy"]
    return f"| K = 32,000, 8 × 256 tokens: peak memory / cross_entropy's | {ratio:.2f} |"


def run_alone(job: str) -> None:
    """One job in a process of its own; prints the growth of its peak memory in MB."""
    # Not at the top: revisions given to --against may lack it.
    from indel.bound.noised import Noised
    from indel.bound.objective import step_terms

    size, rows, length = 32_000, 8, 256
    schedule = Schedule.paper(size, 16, 0.6)
    generator = torch.Generator().manual_seed(0)
    tokens = torch.randint(size, (rows, length), generator=generator)
    x_0 = Batch(tokens, torch.full((rows,), length))
    t = torch.full((rows,), 8)
    noised = Noised.draw(schedule, x_0, t, generator=generator)
    seen = noised.seen
    torch.nn.functional.cross_entropy(torch.randn(4, 4, requires_grad=True), torch.zeros(4).long())
    before = peak_megabytes()
    logits = torch.randn(*seen.tokens.shape, size + 1, requires_grad=True)
    deletions = torch.randn(rows, seen.width + 1, 33, requires_grad=True)
    if job == "cross_entropy":
        target = torch.zeros(seen.tokens.numel(), dtype=torch.int64)
        torch.nn.functional.cross_entropy(logits.flatten(0, 1), target).backward()
    else:
        output = DenoiserOutput(logits, deletions)
        step_terms(schedule, output, noised).total.mean().backward()
    print(peak_megabytes() - before)


def reverse_step_ratio(x_0: Batch) -> str:
    """One reverse step against the bare network."""
    vocabulary = CharacterVocabulary.text8()
    schedule = Schedule.paper(28, 32, 0.6)
    generator = torch.Generator().manual_seed(0)
    denoiser = Denoiser.from_preset("small", vocabulary, schedule, generator=generator)
    t = torch.full((len(x_0),), 10)

    @torch.inference_mode()
    def network() -> None:
        denoiser(x_0, t)

    @torch.inference_mode()
    def step() -> None:
        output = denoiser(x_0, t)
        ReverseStep.of(schedule, output, x_0, t).sample(generator=generator)

    bare, whole = median_seconds(network, step)
    return f"| one reverse step / the network's forward pass | {whole / bare:.2f} |"


def compared_jobs() -> dict[str, Callable[[int], list[float]]]:
    """What is compared with an earlier revision: from a seed to values that must stay."""
    generator = torch.Generator().manual_seed(0)
    text = text8_like(64, generator)
    numbers = ArithmeticData(seed=0).batch(0, 64, "train")
    other = text8_like(64, generator)
    schedule = Schedule.paper(28, 32, 0.6)
    t = torch.randint(1, 33, (64,), generator=generator)

    def alignments(seed: int) -> list[float]:
        return log_prob(schedule, text, other, t).tolist()

    # At t = T nothing of x_0 is left, and pairs of unrelated texts are impossible.
    earlier = t.clamp_max(31)

    def drawn(seed: int) -> list[float]:
        generator = torch.Generator().manual_seed(seed)
        edits = sample_edits(schedule, text, other, earlier, generator=generator)
        return edits.source.double().mean(dim=1).tolist()

    def marginals(seed: int) -> list[float]:
        return edit_marginals(schedule, text, other, earlier).prob_inserted.sum(dim=1).tolist()

    return {
        "text8, 64 × 118, K = 28, T = 32: corrupt + loss + gradient": loss_job(
            text, Schedule.paper(28, 32, 0.6), 32, 127
        ),
        "arithmetic, 64 × 32–64, K = 512, T = 10: corrupt + loss + gradient": loss_job(
            numbers, Schedule.paper(512, 10, 0.6), 10, None
        ),
        "`log_prob`, 64 pairs of 118 characters": alignments,
        "`sample_edits`, the same pairs": drawn,
        "`edit_marginals`, the same pairs": marginals,
    }


def loss_job(
    x_0: Batch, schedule: Schedule, steps: int, limit: int | None
) -> Callable[[int], list[float]]:
    """From a seed to each sequence's loss and the norms of its gradients."""
    objective = objective_of(schedule, limit)
    length = LengthTable(300)
    generator = torch.Generator().manual_seed(1)
    sizes = (schedule.vocab_size + 1, 129)
    random_logits = [torch.randn(len(x_0), 320, size, generator=generator) for size in sizes]

    def job(seed: int) -> list[float]:
        logits: list[torch.Tensor] = []

        def denoise(x_t: Batch, t: torch.Tensor) -> DenoiserOutput:
            for each, width in zip(random_logits, (x_t.width, x_t.width + 1), strict=True):
                logits.append(each[:, :width].detach().requires_grad_())
            return DenoiserOutput(*logits)

        generator = torch.Generator().manual_seed(seed)
        loss = objective(denoise, length, x_0, generator=generator).total
        loss.sum().backward()
        norms = [each.grad.norm(dim=(1, 2)) for each in logits if each.grad is not None]
        return torch.cat([loss.detach(), *norms]).tolist()

    return job


def serve() -> None:
    """Do the jobs asked for on standard input, one line each; answer with CPU time and values."""
    jobs = list(compared_jobs().values())
    for line in sys.stdin:
        number, seed = json.loads(line)
        start = time.process_time()
        values = jobs[number](seed)
        print(json.dumps([time.process_time() - start, values]), flush=True)


def compare(revision: str, repeats: int) -> None:
    """This tree against an earlier one, in turns."""
    root = Path(__file__).parents[1]
    with tempfile.TemporaryDirectory() as folder:
        archive = subprocess.run(
            ["git", "archive", revision, "src"], cwd=root, capture_output=True, check=True
        ).stdout
        subprocess.run(["tar", "-x", "-C", folder], input=archive, check=True)
        workers = [
            subprocess.Popen(
                [sys.executable, __file__, "--job", "serve"],
                env={**os.environ, "PYTHONPATH": str(Path(tree) / "src")},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
            for tree in (folder, root)
        ]
        print("| what | before (ms of CPU) | now | ratio |\n|---|---|---|---|")
        for number, name in enumerate(compared_jobs()):
            times: list[list[float]] = [[], []]
            for seed in range(repeats + 2):
                answers = []
                for worker in workers:
                    assert worker.stdin is not None
                    assert worker.stdout is not None
                    print(json.dumps([number, seed]), file=worker.stdin, flush=True)
                    answers.append(json.loads(worker.stdout.readline()))
                before, now = (torch.tensor(values).double() for _, values in answers)
                torch.testing.assert_close(now, before, rtol=2e-5, atol=1e-5)
                if seed >= 2:  # the first ones fill caches
                    for record, (seconds, _) in zip(times, answers, strict=True):
                        record.append(seconds)
            before_ms, now_ms = (1000 * statistics.median(record) for record in times)
            print(f"| {name} | {before_ms:.1f} | {now_ms:.1f} | {before_ms / now_ms:.2f} |")
        for worker in workers:
            worker.communicate()


def main() -> None:
    generator = torch.Generator().manual_seed(0)
    text = text8_like(64, generator)
    numbers = ArithmeticData(seed=0).batch(0, 64, "train")
    print(
        f"Machine: {platform.machine()}, {torch.get_num_threads()} threads, torch "
        f"{torch.__version__}; seed 0; {datetime.now(UTC):%Y-%m-%d}; "
        f"command: python benchmarks/objective.py\n"
    )
    print("| what | ratio |\n|---|---|")
    characters, integers = CharacterVocabulary.text8(), IntegerVocabulary(512)
    print(share_of_a_training_step("text8, 64 × 118", characters, text, 32, 128))
    print(share_of_a_training_step("arithmetic, 64 × 32–64", integers, numbers, 10, None))
    print(reverse_step_ratio(text))
    print(memory_ratio())


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--against", metavar="GIT-REVISION")
    parser.add_argument("--repeats", type=int, default=21)
    parser.add_argument("--job", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.against:
        compare(options.against, options.repeats)
    elif options.job == "serve":
        serve()
    elif options.job:
        run_alone(options.job)
    else:
        main()
