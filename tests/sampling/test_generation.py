"""Samples follow the enumerated p_θ, whatever stands beside them, and never get too long."""

from __future__ import annotations

import pytest
import torch

from indel import Batch
from indel.model import Denoiser
from indel.model.reverse import EditWeights, ReverseStep
from indel.process import IdentityTransition, Schedule, Step
from indel.sampling.generation import SamplingOptions, denoise_from, generate
from indel.sampling.truncation import Sharpening
from support.denoisers import Tokens, reverse_matrix, tiny_denoiser
from support.frequencies import Outcome, chi_square_p, count
from support.generation_cases import (
    DEL,
    DRAWS,
    EVERY,
    INS,
    LONGEST,
    SCHEDULE,
    Longest,
    counted,
    enumerated,
    generator,
    law_of,
    law_of_start,
    perturbed,
    prolific,
    repeated,
    seeds,
    some_start,
    step_of,
)

TOKENS, DELETIONS = "embedding.weight", "deletions_head.bias"


@pytest.mark.parametrize(
    ("tokens", "t", "heads"),
    [
        ((1, INS, DEL), 2, (TOKENS, DELETIONS)),
        ((DEL,), 3, (TOKENS, DELETIONS)),
        ((0, 1), 1, (TOKENS,)),
        ((), 2, (DELETIONS,)),
    ],
)
def test_one_step_follows_its_log_prob(tokens: Tokens, t: int, heads: tuple[str, ...]) -> None:
    denoiser = tiny_denoiser(SCHEDULE)
    x_prev = step_of(denoiser, tokens, t, DRAWS).sample(generator=generator())
    found = count(x_prev.widened(LONGEST).tokens, lengths=x_prev.lengths, longest=LONGEST)

    def law(of: Denoiser) -> dict[Outcome, float]:
        probs = reverse_matrix(of, t, [tokens], EVERY)[0].tolist()
        return {(x,): prob for x, prob in zip(EVERY, probs, strict=True)}

    assert sum(law(denoiser).values()) > 0.6
    assert chi_square_p(found, law(denoiser)) > 0.01
    for head in heads:
        assert chi_square_p(found, law(perturbed(denoiser, head))) < 1e-4


@pytest.mark.parametrize(("tokens", "t"), [((1, INS, DEL), 2), ((DEL,), 3), ((0,), 2)])
def test_denoising_follows_the_enumerated_law(tokens: Tokens, t: int) -> None:
    denoiser, longest = tiny_denoiser(SCHEDULE, seed=1), Longest()
    options = SamplingOptions(max_length=100)
    samples = denoise_from(
        denoiser, repeated(tokens), t, generator=generator(1), options=options, callback=longest
    )
    found = counted(samples, longest)
    probs = enumerated(denoiser, law_of(tokens), t)
    assert sum(probs.values()) > 0.6
    assert chi_square_p(found, probs) > 0.01
    for head in (TOKENS, DELETIONS):
        other = perturbed(denoiser, head)
        assert chi_square_p(found, enumerated(other, law_of(tokens), t)) < 1e-4


def test_generation_follows_the_enumerated_law() -> None:
    denoiser, longest = tiny_denoiser(SCHEDULE, seed=2), Longest()
    with torch.no_grad():
        denoiser.length.logits[:3] += 3.0
    options = SamplingOptions(max_length=100)
    samples = generate(denoiser, DRAWS, generator=generator(2), options=options, callback=longest)
    found = counted(samples, longest)
    probs = enumerated(denoiser, law_of_start(denoiser), 3)
    assert sum(probs.values()) > 0.6
    assert chi_square_p(found, probs) > 0.01
    for head in (TOKENS, DELETIONS, "length.logits"):
        other = perturbed(denoiser, head)
        assert chi_square_p(found, enumerated(other, law_of_start(other), 3)) < 1e-4


def test_the_weights_of_the_edits_are_those_asked_for() -> None:
    denoiser = tiny_denoiser(SCHEDULE, seed=3)
    options = SamplingOptions(max_length=100, edit_weights=EditWeights.joint)
    x_t = repeated((1, DEL), 200)
    joint = denoise_from(denoiser, x_t, 2, generator=generator(), options=options)
    usual = denoise_from(denoiser, x_t, 2, generator=generator())
    assert not joint.x.equals(usual.x)


@pytest.mark.parametrize("max_length", [None, 30])
def test_a_row_depends_on_its_own_seed_alone(max_length: int | None) -> None:
    denoiser, (x_t, t) = tiny_denoiser(SCHEDULE, seed=4, max_length=20), some_start()
    options = SamplingOptions(max_length=max_length, tokens=Sharpening(0.8, 0.95))
    together = denoise_from(denoiser, x_t, t, generator=seeds(*range(16)), options=options)
    for row in range(0, 16, 3):
        index = torch.tensor([row])
        for width in (0, 37):
            alone = x_t.rows(index).trimmed().widened(width)
            sample = denoise_from(denoiser, alone, t[index], generator=seeds(row), options=options)
            assert sample.x.equals(together.x.rows(index))
            assert sample.redrawn.tolist() == together.redrawn[index].tolist()
    # The seeds do matter.
    other = denoise_from(denoiser, x_t, t, generator=seeds(*range(16, 32)), options=options)
    assert not other.x.equals(together.x)


def test_a_generated_row_depends_on_its_own_seed_alone() -> None:
    denoiser = tiny_denoiser(SCHEDULE, seed=5, max_length=12)
    together = generate(denoiser, 16, generator=seeds(*range(16)))
    for row in range(0, 16, 3):
        alone = generate(denoiser, 1, generator=seeds(row))
        assert alone.x.to_lists() == [together.x.to_lists()[row]]
    assert len(set(map(tuple, together.x.to_lists()))) > 5


def test_redrawing_leaves_the_other_rows_alone() -> None:
    denoiser = prolific(tiny_denoiser(SCHEDULE, seed=6, max_length=8))
    together = generate(denoiser, 16, generator=seeds(*range(16)))
    assert int((together.redrawn > 0).sum()) > 8
    for row in range(0, 16, 3):
        alone = generate(denoiser, 1, generator=seeds(row))
        assert alone.x.to_lists() == [together.x.to_lists()[row]]
        assert alone.redrawn.tolist() == [together.redrawn[row].item()]


def test_one_stream_serves_several_runs() -> None:
    denoiser, noise = tiny_denoiser(SCHEDULE), seeds(*range(16))
    first = generate(denoiser, 16, generator=noise)
    assert not first.x.equals(generate(denoiser, 16, generator=noise).x)


def test_nothing_reads_the_global_generator() -> None:
    denoiser, state = tiny_denoiser(SCHEDULE), torch.random.get_rng_state()
    generate(denoiser, 4, generator=generator())
    assert torch.equal(torch.random.get_rng_state(), state)


# ---------------------------------------------------------------- the run


def test_the_callback_sees_every_step() -> None:
    seen: list[tuple[int, list[list[int]]]] = []
    samples = generate(
        tiny_denoiser(SCHEDULE),
        5,
        generator=generator(),
        callback=lambda t, x_t: seen.append((t, x_t.to_lists())),
    )
    assert [t for t, _ in seen] == [3, 2, 1, 0]
    assert all(set(row) <= {DEL} for row in seen[0][1])
    assert seen[-1][1] == samples.x.to_lists()
    assert samples.network_calls == 3
    assert samples.t.tolist() == [0] * 5


@pytest.mark.parametrize("last", [3, 2, 1, 0])
def test_the_callback_stops_the_run(last: int) -> None:
    samples = generate(
        tiny_denoiser(SCHEDULE),
        4,
        generator=generator(),
        callback=lambda t, x_t: t > last,
        keep_trajectories=True,
    )
    assert samples.t.tolist() == [last] * 4
    assert samples.network_calls == 3 - last
    assert samples.trajectories is not None
    assert samples.trajectories[0].times == tuple(range(3, last - 1, -1))
    # It can be taken up again.
    if last:
        rest = denoise_from(tiny_denoiser(SCHEDULE), samples.x, samples.t, generator=generator())
        assert rest.t.tolist() == [0] * 4


def test_rows_that_start_later_wait() -> None:
    x_t = Batch.from_lists([[0, 1], [1, DEL]])
    states: dict[int, list[list[int]]] = {}
    samples = denoise_from(
        tiny_denoiser(SCHEDULE),
        x_t,
        torch.tensor([1, 2]),
        generator=generator(),
        callback=lambda t, x: states.update({t: x.to_lists()}),
    )
    assert list(states) == [2, 1, 0]
    assert states[1][0] == [0, 1]
    assert samples.network_calls == 2
    stopped = denoise_from(
        tiny_denoiser(SCHEDULE),
        x_t,
        torch.tensor([1, 2]),
        generator=generator(),
        callback=lambda t, x: t > 2,
        keep_trajectories=True,
    )
    assert stopped.t.tolist() == [1, 2]
    assert stopped.x.equals(x_t)
    assert stopped.trajectories is not None
    assert [each.times for each in stopped.trajectories] == [(1,), (2,)]


def test_equal_rows_are_computed_once() -> None:
    """Draws of one x_t are equal before the first step; the network sees each sequence once."""
    denoiser = tiny_denoiser(SCHEDULE)
    seen: list[list[list[int]]] = []
    hook = denoiser.register_forward_pre_hook(lambda _, given: seen.append(given[0].to_lists()))
    samples = denoise_from(
        denoiser, Batch.from_lists([[0, 1], [], [0, 1], [0, 1]] * 5), 2, generator=generator()
    )
    hook.remove()
    assert sorted(seen[0]) == [[], [0, 1]]
    assert all(len(rows) == len({tuple(row) for row in rows}) for rows in seen)
    assert len({tuple(row) for row in samples.x.to_lists()}) > 2


def test_progress_is_shown_on_request(capsys: pytest.CaptureFixture[str]) -> None:
    generate(tiny_denoiser(SCHEDULE), 1, generator=generator())
    silent = capsys.readouterr()
    assert silent.out == silent.err == ""
    generate(tiny_denoiser(SCHEDULE), 1, generator=generator(), progress=True)
    shown = capsys.readouterr()
    assert shown.out == ""
    assert "100%" in shown.err


def test_trajectories_are_kept_on_request_only() -> None:
    assert generate(tiny_denoiser(SCHEDULE), 1, generator=generator()).trajectories is None


@pytest.mark.parametrize("t", [1, 2, 3])
def test_empty_sequences(t: int) -> None:
    denoiser = tiny_denoiser(SCHEDULE)
    for rows in ([], [[]], [[], [DEL], []], [[INS]] if t < 3 else [[]]):
        samples = denoise_from(
            denoiser, Batch.from_lists(rows), t, generator=generator(), keep_trajectories=True
        )
        assert len(samples.x) == len(samples.t) == len(rows)
        assert samples.trajectories is not None
        assert len(samples.trajectories) == len(rows)
    assert len(generate(denoiser, 0, generator=generator()).x) == 0


@pytest.mark.parametrize("inference", [False, True])
def test_training_goes_on_after_sampling(inference: bool) -> None:
    schedule = Schedule.paper(2, 4, 0.5)
    denoiser = tiny_denoiser(schedule)
    with torch.inference_mode(inference):
        samples = generate(denoiser, 3, generator=generator())
    # Autograd refuses to save tensors made in inference mode; the schedule keeps its tables.
    assert not schedule.tables(torch.device("cpu")).jump.keep.is_inference()
    for tensor in (samples.x.tokens, samples.x.lengths, samples.t, samples.redrawn):
        assert tensor.is_inference() == inference
    seen, t = Batch.from_lists(samples.x.to_lists()), torch.full((3,), 2)
    step = ReverseStep.of(schedule, denoiser(seen, t), seen, t)
    step.log_prob(seen).sum().backward()
    assert denoiser.embedding.weight.grad is not None


def test_bad_input_is_refused() -> None:
    denoiser = tiny_denoiser(SCHEDULE)
    with pytest.raises(ValueError, match="token 4"):
        denoise_from(denoiser, Batch.from_lists([[4]]), 2, generator=generator())
    with pytest.raises(ValueError, match="t must lie in 1…3"):
        denoise_from(denoiser, Batch.from_lists([[0]]), 0, generator=generator())
    with pytest.raises(ValueError, match="q cannot produce token 0 of x_t"):
        denoise_from(denoiser, Batch.from_lists([[0]]), 3, generator=generator())
    with pytest.raises(ValueError, match="redraws must be at least 0"):
        SamplingOptions(redraws=-1)
    with pytest.raises(ValueError, match="max_length must be at least 0"):
        SamplingOptions(max_length=-1)
    lasting = tiny_denoiser(Schedule([Step(0.1, 0.5, IdentityTransition(2))]))
    with pytest.raises(ValueError, match="delete everything"):
        generate(lasting, 1, generator=generator())
