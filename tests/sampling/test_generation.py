"""Samples follow the enumerated p_θ, whatever stands beside them, and never get too long."""

from __future__ import annotations

import copy

import pytest
import torch
from torch import Tensor

from indel import Batch, RowSeeds
from indel.model import Denoiser, DenoiserOutput
from indel.model.reverse import EditWeights, ReverseStep
from indel.process import IdentityTransition, MatrixTransition, Schedule, Step, corrupt
from indel.sampling.generation import Samples, SamplingOptions, denoise_from, generate
from indel.sampling.length_limit import draw_within
from indel.sampling.truncation import Sharpening
from support.denoisers import Tokens, reverse_matrix, sequences, tiny_denoiser
from support.frequencies import Outcome, chi_square_p, count

INS, DEL = 2, 3
SCHEDULE = Schedule(
    [
        Step(0.2, 0.3, MatrixTransition([[0.8, 0.2], [0.3, 0.7]]), torch.tensor([0.7, 0.3])),
        Step(0.3, 0.4, MatrixTransition([[0.6, 0.4], [0.1, 0.9]]), torch.tensor([0.2, 0.8]), 0.5),
        Step(0.0, 1.0, IdentityTransition(2)),
    ]
)
LONGEST = 3
EVERY = sequences(range(4), LONGEST)
DATA = sequences(range(2), LONGEST)
DRAWS = 30_000


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def seeds(*values: int) -> RowSeeds:
    return RowSeeds(torch.tensor(values))


def repeated(tokens: Tokens, rows: int = DRAWS) -> Batch:
    return Batch.from_lists([tokens] * rows)


class Longest:
    """A callback that keeps the length of the longest sequence on each row's way."""

    def __init__(self) -> None:
        self.lengths: Tensor | None = None

    def __call__(self, t: int, x_t: Batch) -> None:
        before = x_t.lengths if self.lengths is None else self.lengths
        self.lengths = torch.maximum(before, x_t.lengths)


def counted(samples: Samples, longest: Longest) -> dict[Outcome, int]:
    """How often each x_0 was sampled; ways that left the enumerated lengths are one outcome."""
    assert longest.lengths is not None
    tokens = samples.x.widened(LONGEST).tokens
    inside = longest.lengths <= LONGEST
    found = count(tokens[inside], lengths=samples.x.lengths[inside], longest=LONGEST)
    return {**found, (): int((~inside).sum())}


def enumerated(denoiser: Denoiser, start: Tensor, t: int) -> dict[Outcome, float]:
    """P(x_0 and no x_s over the longest length) from a law of x_t on EVERY: exact, nothing lost."""
    law = start.double()
    for time in range(t, 0, -1):
        reached = law.nonzero()[:, 0]
        states = [EVERY[number] for number in reached.tolist()]
        earlier = EVERY if time > 1 else DATA
        law = law[reached] @ reverse_matrix(denoiser, time, states, earlier)
    return {(tokens,): prob for tokens, prob in zip(DATA, law.tolist(), strict=True)}


def law_of(*rows: Tokens) -> Tensor:
    return torch.tensor([tokens in rows for tokens in EVERY]).double() / len(rows)


def law_of_start(denoiser: Denoiser) -> Tensor:
    lengths = denoiser.length.log_prob(torch.arange(LONGEST + 1)).exp()
    marks = [tokens == (DEL,) * len(tokens) for tokens in EVERY]
    sizes = torch.tensor([len(tokens) for tokens in EVERY])
    return lengths.detach()[sizes] * torch.tensor(marks)


TOKENS, DELETIONS = "embedding.weight", "deletions_head.bias"


def perturbed(denoiser: Denoiser, head: str) -> Denoiser:
    """One head a little off: at the value 0 of the first, or at no deletions of the second."""
    other = copy.deepcopy(denoiser)
    with torch.no_grad():
        other.get_parameter(head)[0] += 0.3
    return other


# ---------------------------------------------------------------- frequencies


def step_of(denoiser: Denoiser, tokens: Tokens, t: int, rows: int) -> ReverseStep:
    """p_θ(x_{t−1} | x_t) for many rows of one x_t, with one call of the network."""
    seen = Batch.from_lists([tokens]).without(INS)
    with torch.no_grad():
        output = denoiser(seen, t)
    output = DenoiserOutput(*(each.expand(rows, -1, -1) for each in output))
    wide = seen.rows(torch.zeros(rows, dtype=torch.int64))
    return ReverseStep.of(denoiser.schedule, output, wide, torch.full((rows,), t))


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


# ---------------------------------------------------------------- independence


def some_start() -> tuple[Batch, Tensor]:
    """Sixteen different sequences, one of them empty, and times for them."""
    x_0 = Batch.from_lists([list(range(2)) * (n % 5) + [n % 2] * (n % 3) for n in range(16)])
    t = torch.arange(16) % 3 + 1
    return corrupt(SCHEDULE, x_0, t, generator=generator(5)).x_t, t


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


# ---------------------------------------------------------------- temperature and top-p


def test_off_is_exactly_off() -> None:
    denoiser, (x_t, t) = tiny_denoiser(SCHEDULE, max_length=20), some_start()
    plain = denoise_from(denoiser, x_t, t, generator=generator())
    options = SamplingOptions(tokens=Sharpening(1.0, 1.0), deletions=Sharpening(1.0, 1.0))
    assert denoise_from(denoiser, x_t, t, generator=generator(), options=options).x.equals(plain.x)


def test_temperature_zero_gives_the_likeliest_value() -> None:
    denoiser = tiny_denoiser(SCHEDULE, seed=7)
    x_1 = Batch.from_lists([[0, 1, DEL, 1, INS, 0], [1, DEL], []])
    seen = x_1.without(INS)
    with torch.no_grad():
        best = denoiser(seen, 1).logits_token[..., :2].argmax(dim=-1)
    for temperature in (0.0, 1e-6):
        options = SamplingOptions(tokens=Sharpening(temperature))
        samples = denoise_from(denoiser, x_1, 1, generator=generator(), options=options)
        assert samples.x.equals(Batch(best, seen.lengths))


def test_the_temperature_of_deletions() -> None:
    denoiser = tiny_denoiser(SCHEDULE, seed=8)
    with torch.no_grad():
        denoiser.deletions_head.weight.zero_()
        denoiser.deletions_head.bias.copy_(torch.tensor([0.0, 1.0, 0.5]))
    options = SamplingOptions(deletions=Sharpening(0.0), tokens=Sharpening(0.0))
    samples = denoise_from(
        denoiser,
        repeated((0, 1), 50),
        2,
        generator=generator(),
        options=options,
        keep_trajectories=True,
    )
    assert samples.trajectories is not None
    # At t − 1 = 1 every deleted token is a DEL: one in each of the three slots.
    assert {trajectory.states[1].count(DEL) for trajectory in samples.trajectories} == {3}


def test_top_p_removes_the_tail() -> None:
    denoiser = tiny_denoiser(SCHEDULE, seed=8)
    with torch.no_grad():
        denoiser.deletions_head.weight.zero_()
        denoiser.deletions_head.bias.copy_(torch.tensor([0.5, 0.2, 0.3]).log())
    counts = []
    for top_p in (1.0, 0.79, 0.5):
        options = SamplingOptions(deletions=Sharpening(top_p=top_p))
        samples = denoise_from(
            denoiser, repeated((), 500), 2, generator=generator(), options=options
        )
        counts.append(set(samples.x.lengths.tolist()))
    assert counts == [{0, 1, 2}, {0, 2}, {0}]


# ---------------------------------------------------------------- length


def prolific(denoiser: Denoiser) -> Denoiser:
    """A denoiser that takes every slot for the place of many deletions."""
    with torch.no_grad():
        denoiser.deletions_head.bias.copy_(torch.tensor([0.0, 1.0, 2.0]))
    return denoiser


class Limit:
    """A callback that wants every sequence within a limit."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.reached = False

    def __call__(self, t: int, x_t: Batch) -> None:
        assert not len(x_t) or int(x_t.lengths.max()) <= self.limit
        self.reached |= bool((x_t.lengths == self.limit).any())


@pytest.mark.parametrize("limit", [0, 1, 4])
def test_no_sequence_is_longer_than_allowed(limit: int) -> None:
    denoiser, within = prolific(tiny_denoiser(SCHEDULE, max_length=7)), Limit(limit)
    options = SamplingOptions(max_length=limit, redraws=2)
    samples = generate(denoiser, 200, generator=generator(), options=options, callback=within)
    assert within.reached
    assert int(samples.dropped.sum()) > 0
    assert int(samples.redrawn.max()) > 1


def test_the_limit_is_the_denoisers_own_by_default() -> None:
    denoiser, within = prolific(tiny_denoiser(SCHEDULE, max_length=5)), Limit(5)
    assert int(generate(denoiser, 50, generator=generator(), callback=within).dropped.sum()) > 0
    free = generate(denoiser, 50, generator=generator(), options=SamplingOptions(max_length=1000))
    assert int(free.dropped.sum()) == int(free.redrawn.sum()) == 0
    assert int(free.x.lengths.max()) > 5


def test_a_start_that_is_too_long_is_cut() -> None:
    denoiser = tiny_denoiser(Schedule.paper(2, 4, 0.0), max_length=6)
    with torch.no_grad():
        denoiser.length.logits.fill_(-100.0)[6] = 0.0
    options = SamplingOptions(max_length=4, redraws=3)
    samples = generate(denoiser, 5, generator=generator(), options=options)
    assert samples.x.lengths.tolist() == [4] * 5
    assert samples.redrawn.tolist() == [3] * 5
    assert samples.dropped.tolist() == [2] * 5


def test_what_is_drawn_again_follows_the_law_within_the_limit() -> None:
    denoiser, tokens, limit = tiny_denoiser(SCHEDULE, seed=9), (1, DEL), 2
    reverse = step_of(denoiser, tokens, 2, DRAWS)
    draw = draw_within(reverse, limit, redraws=30, generator=generator(3))
    assert int(draw.dropped.sum()) == 0
    assert int(draw.redrawn.sum()) > DRAWS / 20
    short = [x for x in EVERY if len(x) <= limit]
    law = reverse_matrix(denoiser, 2, [tokens], short)[0]
    probs = dict(zip(((x,) for x in short), (law / law.sum()).tolist(), strict=True))
    found = count(draw.x.tokens, lengths=draw.x.lengths, longest=limit)
    assert chi_square_p(found, probs) > 0.01


def test_the_last_dels_are_dropped() -> None:
    denoiser = prolific(tiny_denoiser(SCHEDULE, seed=10))
    reverse = step_of(denoiser, (0, 1), 2, 300)
    free = reverse.sample(generator=generator(4)).to_lists()
    cut = draw_within(reverse, 3, redraws=0, generator=generator(4))
    for whole, short, dropped in zip(free, cut.x.to_lists(), cut.dropped.tolist(), strict=True):
        for _ in range(dropped):
            del whole[len(whole) - 1 - whole[::-1].index(DEL)]
        assert short == whole
        assert len(short) <= 3
    assert int(cut.dropped.max()) > 1


def test_too_long_a_start_is_refused() -> None:
    with pytest.raises(ValueError, match="row 1 has 3 tokens, more than max_length = 2"):
        denoise_from(
            tiny_denoiser(SCHEDULE),
            Batch.from_lists([[0], [0, INS, 1]]),
            2,
            generator=generator(),
            options=SamplingOptions(max_length=2),
        )


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
