"""Choices the paper leaves open, measured on a reduced arithmetic task (`make bench`).

Which weights q gives the kinds of edits (`EditWeights`), whether t enters the network, and how much
variance is saved by summing over all edit summaries instead of taking the sampled one.
"""

import argparse
from collections.abc import Callable
from datetime import UTC, datetime

import torch

from indel.bound.noised import Noised
from indel.bound.objective import Objective, length_term, step_terms
from indel.data import ArithmeticData
from indel.model import Denoiser
from indel.model.reverse import EditWeights
from indel.process import Schedule
from indel.process.tables import JumpTables

STEPS, RATE, LIMIT = 10, 0.6, 48
Choice = Callable[[JumpTables], EditWeights]


def train(
    data: ArithmeticData, choice: Choice, *, time_embedding: bool, updates: int, seed: int
) -> tuple[Denoiser, EditWeights]:
    """A tiny denoiser after so many updates."""
    schedule = Schedule.paper(data.vocabulary.size, STEPS, RATE)
    weights = choice(schedule.tables(torch.device("cpu")).jump)
    generator = torch.Generator().manual_seed(seed)
    denoiser = Denoiser.from_preset(
        "tiny",
        data.vocabulary,
        schedule,
        generator=generator,
        max_length=LIMIT,
        time_embedding=time_embedding,
    )
    optimizer = torch.optim.AdamW(denoiser.parameters(), weight_decay=0.0)
    decay = torch.optim.lr_scheduler.OneCycleLR(optimizer, 3e-3, total_steps=updates)
    objective = Objective(schedule, max_length=LIMIT, weights=weights)
    for update in range(updates):
        x_0 = data.batch(update, 32, "train")
        loss = objective(denoiser, denoiser.length, x_0, generator=generator).total.mean()
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(denoiser.parameters(), 1.0)
        optimizer.step()
        decay.step()
    return denoiser.eval(), weights


@torch.inference_mode()
def bounds(
    data: ArithmeticData, denoiser: Denoiser, weights: EditWeights, rows: int
) -> tuple[torch.Tensor, torch.Tensor, float]:
    """The bound of each sequence by sampled summaries and by all of them; variances of one term."""
    schedule = denoiser.schedule
    generator = torch.Generator().manual_seed(1)
    x_0 = data.batch(0, rows, "valid")
    at_end = length_term(schedule, denoiser.length, x_0.lengths).double()
    sampled, summed = at_end.clone(), at_end.clone()
    variances = torch.zeros(2, dtype=torch.float64)
    for t in range(1, STEPS + 1):
        noised = Noised.draw(schedule, x_0, torch.full((rows,), t), generator=generator)
        output = denoiser(noised.seen, noised.t)
        one = step_terms(schedule, output, noised, weights).total
        every = step_terms(schedule, output, noised.with_edits(None), weights).total
        sampled, summed = sampled + one, summed + every
        variances += torch.stack([one.double().var(), every.double().var()])
    return sampled, summed, float(variances[1] / variances[0])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--updates", type=int, default=600)
    parser.add_argument("--rows", type=int, default=512)
    parser.add_argument("--seeds", type=int, default=2)
    options = parser.parse_args()
    data = ArithmeticData(seed=0, numbers=32, max_step=3, min_length=6, max_length=10)
    print(
        f"{datetime.now(UTC):%Y-%m-%d}, torch {torch.__version__}, "
        f"{torch.get_num_threads()} threads; python benchmarks/edit_choices.py "
        f"--updates {options.updates} --rows {options.rows} --seeds {options.seeds}; "
        f"{RATE=}, {STEPS=}, entropy of the data {data.exact_entropy():.2f} nats\n"
    )
    print("| weights | time | seed | bound, sampled edits | all edits | variance, all/sampled |")
    print("|---|---|---|---|---|---|")
    for name, choice in (("normalised", EditWeights.normalized), ("joint", EditWeights.joint)):
        for time_embedding in (True, False):
            for seed in range(options.seeds):
                denoiser, weights = train(
                    data, choice, time_embedding=time_embedding, updates=options.updates, seed=seed
                )
                sampled, summed, ratio = bounds(data, denoiser, weights, options.rows)
                error = sampled.std() / options.rows**0.5
                print(
                    f"| {name} | {'yes' if time_embedding else 'no'} | {seed} "
                    f"| {sampled.mean():.2f} ± {error:.2f} | {summed.mean():.2f} "
                    f"| {ratio:.3f} |",
                    flush=True,
                )


if __name__ == "__main__":
    main()
