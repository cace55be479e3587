"""Diffusion as methods: masks have their closed form and are no data; gaps; repair."""

import itertools
import math

import pytest
import torch
from torch import Tensor, nn

from indel import Batch
from indel.comparison.diffusion import Diffusion, MaskedDenoiser, build
from indel.comparison.interface import Method, Preparing
from indel.comparison.registry import USUAL, process_of
from indel.comparison.schedules import forward_process
from indel.data import Sequences
from indel.model import Denoiser
from indel.model.reverse import ReverseStep
from support.small_methods import STACK, small_method

OURS = [name for name in USUAL if process_of(name).has_steps]
SIZE, STEPS = 3, 4
X_0 = [2, 0, 2]


def diffusion(name: str, *, max_length: int = 4) -> Diffusion:
    method = small_method(name, SIZE, max_length, steps=STEPS)
    assert isinstance(method, Diffusion)
    return method


# --- masked diffusion in place -------------------------------------------------------------------


def masking_laws(length: int) -> list[tuple[tuple[int, ...], float]]:
    """When each token is masked, 1…T, and how likely that is: α_t = 1 − t/T, so 1/T each."""
    times = itertools.product(range(1, STEPS + 1), repeat=length)
    return [(each, STEPS**-length) for each in times]


def state(masked_at: tuple[int, ...], t: int, mask: int, del_: int) -> list[int]:
    """x_t of a chain: at T, all tokens are DELs."""
    if t == STEPS:
        return [del_] * len(masked_at)
    return [mask if at <= t else x for x, at in zip(X_0, masked_at, strict=True)]


def guesses(method: Diffusion, x_t: list[list[int]], t: int) -> Tensor:
    """log p̃(x̃_0 | x_t) over the tokens of the data, from the logits of a plain denoiser."""
    output = Denoiser.forward(method.denoiser, Batch.from_lists(x_t), t)
    return torch.log_softmax(output.logits_token[..., :SIZE].double(), dim=-1)


@torch.no_grad()
def closed_form(method: Diffusion) -> float:
    """Σ_t (α_{t−1} − α_t)/(1 − α_t) E[Σ_masked −log p̃(x_0^i | x_t)] − log p(length), enumerated."""
    alpha = [1.0 - t / STEPS for t in range(STEPS + 1)]
    total = -float(method.denoiser.length.log_prob(torch.tensor([len(X_0)])))
    for t in range(1, STEPS + 1):
        factor = (alpha[t - 1] - alpha[t]) / (1.0 - alpha[t])
        for masked in itertools.product([False, True], repeat=len(X_0)):
            prob = math.prod(1.0 - alpha[t] if each else alpha[t] for each in masked)
            if prob == 0.0:
                continue
            at = tuple(1 if each else STEPS + 1 for each in masked)
            x_t = state(at, t, SIZE, method.denoiser.schedule.del_)
            logp = guesses(method, [x_t], t)[0]
            cost = sum(-float(logp[i, X_0[i]]) for i, each in enumerate(masked) if each)
            total += prob * factor * cost
    return total


@torch.no_grad()
def by_reverse_steps(method: Diffusion) -> float:
    """E[log q(chain) − log p_θ(chain)] over all chains, with the library's p_θ(x_{t−1} | x_t)."""
    denoiser, schedule = method.denoiser, method.denoiser.schedule
    chains = masking_laws(len(X_0))
    length = float(denoiser.length.log_prob(torch.tensor([len(X_0)])))
    logp = torch.full((len(chains),), length, dtype=torch.float64)
    for t in range(1, STEPS + 1):
        at = [[state(each, s, SIZE, schedule.del_) for each, _ in chains] for s in (t - 1, t)]
        x_prev, x_t = (Batch.from_lists(rows) for rows in at)
        times = torch.full((len(chains),), t)
        step = ReverseStep.of(schedule, denoiser(x_t, times), x_t, times)
        logp += step.log_prob(x_prev)
    prob = torch.tensor([each for _, each in chains], dtype=torch.float64)
    return float((prob * (prob.log() - logp)).sum())


def test_masked_diffusion_has_the_known_closed_form() -> None:
    method = diffusion("in-place-mask")
    expected = closed_form(method)
    assert by_reverse_steps(method) == pytest.approx(expected, abs=1e-5)
    many = Batch.from_lists([X_0] * 3000)
    generator = torch.Generator().manual_seed(0)
    for found in (
        method.negative_log_likelihood(many, generator=generator),
        method.loss(many, generator=generator).detach(),
    ):
        error = float(found.double().std()) / len(many) ** 0.5
        assert float(found.mean()) == pytest.approx(expected, abs=4 * error)
        assert error < 0.02 * expected


def test_the_schedule_masks_a_share_of_t_over_T() -> None:
    schedule, mask = forward_process("in-place-mask", SIZE, num_steps=STEPS, rate=0.0)
    assert mask == SIZE
    for t in range(STEPS):
        matrix = schedule.jump(t).kept.matrix()
        assert matrix[0, mask].item() == pytest.approx(t / STEPS)
        assert schedule.jump(t).keep == 1.0


@pytest.mark.parametrize("name", [each for each in OURS if "mask" in each])
def test_a_mask_in_x_0_has_probability_zero(name: str) -> None:
    method = diffusion(name)
    assert isinstance(method.denoiser, MaskedDenoiser)
    generator = torch.Generator().manual_seed(0)
    with_mask = Batch.from_lists([[0, SIZE, 1]] * 8)
    assert method.negative_log_likelihood(with_mask, generator=generator).isinf().all()
    drawn = method.generate(200, generator=generator).sequences
    assert {token for row in drawn for token in row} <= set(range(SIZE))


# --- all of them ---------------------------------------------------------------------------------


@pytest.mark.parametrize("name", OURS)
def test_the_loss_is_unbiased_and_its_gradient_is_finite(name: str) -> None:
    method = diffusion(name)
    x_0 = Batch.from_lists([X_0] * 1000)
    loss = method.loss(x_0, generator=torch.Generator().manual_seed(0))
    bound = method.negative_log_likelihood(x_0, generator=torch.Generator().manual_seed(1))
    both = [each.detach().double() for each in (loss, bound)]
    error = math.hypot(*(float(each.std()) / len(x_0) ** 0.5 for each in both))
    assert float(both[0].mean() - both[1].mean()) == pytest.approx(0.0, abs=4 * error)
    loss.mean().backward()  # type: ignore[no-untyped-call]
    for weight in method.parameters():
        assert weight.grad is None or bool(weight.grad.isfinite().all())


def prepared(name: str) -> tuple[Diffusion, Sequences]:
    data = Sequences([[0, 1], [1, 2, 0], [2, 1, 0], [0, 0, 0, 0]] * 1024, held_out=0.25)
    method = diffusion(name)
    assert isinstance(method, Preparing)
    method.prepare(data, seed=0)
    return method, data


def test_counts_are_taken_before_the_first_step() -> None:
    """Only few sequences occur in training, and a network that starts from counts knows it."""
    generator = torch.Generator().manual_seed(0)
    nats = {}
    for name in ("insert-delete-0.6", "insert-delete-0.6-counts"):
        method, data = prepared(name)
        x_0 = data.examples(0, 256, "train")
        nats[name] = method.negative_log_likelihood(x_0, generator=generator).mean()
    assert nats["insert-delete-0.6-counts"] < nats["insert-delete-0.6"] - 0.5


@pytest.mark.parametrize("name", ["in-place-uniform", "in-place-mask"])
def test_in_place_lengths_are_the_datas(name: str) -> None:
    method, data = prepared(name)
    assert not method.changes_length
    lengths = data.examples(0, 4096, "train").lengths
    drawn = method.generate(500, generator=torch.Generator().manual_seed(0))
    found = torch.tensor([len(row) for row in drawn.sequences])
    # The table is smoothed by one count for each length, of 4096.
    for length in range(1, 5):
        expected = float((lengths == length).double().mean())
        assert float((found == length).double().mean()) == pytest.approx(expected, abs=0.08)


@pytest.mark.parametrize(
    "name", ["in-place-gaussian", "insert-delete-0.6", "delete-only", "mask-insert-delete-0.6"]
)
def test_gaps_are_filled_between_what_is_given(name: str) -> None:
    method, _ = prepared(name)
    generator = torch.Generator().manual_seed(0)
    left, right = [[0], [1, 2]], [[2], [0]]
    known = method.infill(left, right, [2, 1], generator=generator)
    assert known is not None
    assert known.calls == STEPS
    assert [len(row) for row in known.sequences] == [4, 4]
    unknown = method.infill(left, right, None, generator=generator)
    assert (unknown is None) == name.startswith("in-place")
    for drawn in (known, unknown):
        for before, after, row in zip(left, right, drawn.sequences if drawn else [], strict=False):
            assert row[: len(before)] == before
            assert row[len(row) - len(after) :] == after


@pytest.mark.parametrize("name", OURS)
def test_repair_changes_what_the_process_can_undo(name: str) -> None:
    method, _ = prepared(name)
    noisy = Batch.from_lists([[0, 1], [2, 2, 2], []])
    drawn = method.repair(noisy, generator=torch.Generator().manual_seed(0))
    if name == "in-place-mask":
        assert drawn is None
        return
    assert drawn is not None
    assert 1 <= drawn.calls < STEPS
    for before, after in zip(noisy.to_lists(), drawn.sequences, strict=True):
        if name.startswith("in-place"):
            assert len(after) == len(before)
        if name == "delete-only" or name.startswith("mask"):
            rest = iter(after)
            assert all(token in rest for token in before), "it inserts alone"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"process": "uniform", "num_steps": 4}, "process must be one of in-place-uniform"),
        ({"process": "delete-only", "num_steps": 1}, "num_steps must be an integer ≥ 2, got 1"),
        ({"process": "insert-delete", "num_steps": 4, "rate": 1.5}, "rate must be a number"),
        ({"process": "delete-only"}, "missing: num_steps"),
    ],
)
def test_bad_options_are_refused(options: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        build(SIZE, STACK, 4, options)


def test_methods_are_what_the_interface_says() -> None:
    for name in OURS:
        method = diffusion(name)
        assert isinstance(method, Method)
        assert isinstance(method, nn.Module)
        assert method.name == name
