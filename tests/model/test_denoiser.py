"""What goes into the network and comes out of it."""

import copy

import pytest
import torch
from torch import Tensor, nn

from indel import Batch, CharacterVocabulary, IntegerVocabulary
from indel.model import PRESETS, Denoiser, DenoiserConfig, TransformerConfig, preset_config
from indel.process import Schedule, corrupt

VOCABULARY = CharacterVocabulary("ABCDE")
SCHEDULE = Schedule.paper(5, 6, 0.6)
BACKBONE = TransformerConfig(
    width=32, num_layers=2, num_heads=4, head_width=8, feedforward_width=48
)


def make(seed: int = 0, **changes: object) -> Denoiser:
    config = DenoiserConfig(
        **{
            "backbone": BACKBONE,
            "vocabulary": VOCABULARY,
            "schedule": SCHEDULE,
            "max_length": 12,
            **changes,
        }
    )
    return Denoiser(config, generator=torch.Generator().manual_seed(seed))


def some_x_t() -> Batch:
    delete = VOCABULARY.del_
    return Batch.from_lists([[0, 4, delete, 2, 1], [], [delete], [3, 3, 3]])


TIMES = torch.tensor([1, 2, 6, 3])


class Recorder(nn.Module):
    """A backbone that keeps what it is given."""

    def forward(self, embedded: Tensor, mask: Tensor) -> Tensor:
        self.embedded, self.mask = embedded, mask
        return embedded


def test_shapes() -> None:
    output = make()(some_x_t(), TIMES)
    assert output.logits_token.shape == (4, 5, 6)
    assert output.logits_deletions.shape == (4, 6, 13)
    few = make(max_deletions=3)(some_x_t(), TIMES)
    assert few.logits_deletions.shape == (4, 6, 4)
    assert make(max_deletions=0)(some_x_t(), 2).logits_deletions.shape == (4, 6, 1)


@pytest.mark.parametrize("rows", [[], [[], []]])
def test_nothing_to_denoise(rows: list[list[int]]) -> None:
    output = make()(Batch.from_lists(rows), 3)
    assert output.logits_token.shape == (len(rows), 0, 6)
    assert output.logits_deletions.shape == (len(rows), 1, 13)
    assert bool(output.logits_deletions.isfinite().all())


def test_eos_closes_each_row_at_its_own_end() -> None:
    denoiser = make(time_embedding=False)
    denoiser.backbone = Recorder()
    x_t = some_x_t()
    denoiser(x_t, TIMES)
    mask = denoiser.backbone.mask
    assert mask.sum(dim=1).tolist() == [6, 1, 2, 4]
    closed = [[*row, VOCABULARY.eos] for row in x_t.to_lists()]
    for row, tokens in enumerate(closed):
        expected = denoiser.embedding.weight[torch.tensor(tokens)]
        assert torch.equal(denoiser.backbone.embedded[row, mask[row]], expected)


def test_deletions_at_the_end_are_read_at_eos() -> None:
    denoiser = make(time_embedding=False)
    denoiser.backbone = Recorder()
    output = denoiser(some_x_t(), TIMES)
    at_eos = denoiser.deletions_head(denoiser.embedding.weight[VOCABULARY.eos])
    for row, length in enumerate([5, 0, 1, 3]):
        torch.testing.assert_close(output.logits_deletions[row, length], at_eos)


def test_time_is_added_and_can_be_left_out() -> None:
    x_t = some_x_t()
    with_time, without = make(), make(time_embedding=False)
    early, late = with_time(x_t, 1), with_time(x_t, 6)
    assert not torch.allclose(early.logits_token[0], late.logits_token[0])
    assert torch.equal(without(x_t, 1).logits_token, without(x_t, 6).logits_token)
    assert [name for name, _ in without.named_parameters() if "time" in name] == []
    with_time.backbone = Recorder()
    with_time(x_t, TIMES)
    tokens = torch.tensor([*x_t.to_lists()[0], VOCABULARY.eos])
    expected = with_time.embedding.weight[tokens] + with_time.time_embedding.weight[0]
    torch.testing.assert_close(with_time.backbone.embedded[0], expected)


def test_first_head_is_the_embedding_of_regular_tokens_and_ins() -> None:
    denoiser = make(time_embedding=False)
    denoiser.backbone = Recorder()
    x_t = some_x_t()
    output = denoiser(x_t, TIMES)
    weight = denoiser.embedding.weight
    expected = weight[x_t.tokens[0]] @ weight[: VOCABULARY.ins + 1].T / 32**0.5
    torch.testing.assert_close(output.logits_token[0], expected)
    output.logits_token[x_t.mask].sum().backward()
    gradient = denoiser.embedding.weight.grad
    assert bool((gradient[: VOCABULARY.ins + 1] != 0).any(dim=1).all())
    assert bool((gradient[VOCABULARY.eos] == 0).all())


def test_parameters_are_not_doubled_by_the_tied_head() -> None:
    denoiser = make()
    rows = [
        p for p in denoiser.parameters() if p.shape[:1] in [(6,), (8,)] and p.shape[1:] == (32,)
    ]
    assert len(rows) == 2  # the embedding of 5 + 3 tokens, and of 6 times


def test_deletions_start_near_none() -> None:
    """Before training the deletions head costs little more than the law of n would."""
    denoiser, generator = make(max_length=40), torch.Generator().manual_seed(0)
    x_0 = Batch(torch.randint(0, 5, (256, 20), generator=generator), torch.full((256,), 20))
    t = torch.randint(1, 7, (256,), generator=generator)
    x_t, edits = corrupt(SCHEDULE, x_0, t, generator=generator)
    with_eos = torch.arange(x_t.width + 1) <= x_t.lengths[:, None]
    counts = edits.deletions[with_eos]
    logp = denoiser.deletions_head.bias.log_softmax(0)
    frequencies = torch.bincount(counts) / len(counts)
    entropy = torch.special.entr(frequencies).sum().item()
    assert -logp[counts].mean().item() < entropy + 0.02


@pytest.mark.parametrize("extra", [0, 1, 9])
def test_rows_do_not_depend_on_padding_or_neighbours(extra: int) -> None:
    denoiser, x_t = make().eval(), some_x_t()
    together = denoiser(x_t.widened(x_t.width + extra), TIMES)
    for row, tokens in enumerate(x_t.to_lists()):
        alone = denoiser(Batch.from_lists([tokens]), TIMES[row : row + 1])
        length = len(tokens)
        torch.testing.assert_close(
            together.logits_token[row, :length], alone.logits_token[0], atol=1e-5, rtol=1e-5
        )
        torch.testing.assert_close(
            together.logits_deletions[row, : length + 1],
            alone.logits_deletions[0],
            atol=1e-5,
            rtol=1e-5,
        )
    assert all(bool(logits.isfinite().all()) for logits in together)


@pytest.mark.parametrize("autocast", [False, True])
def test_everything_gets_a_finite_gradient(autocast: bool) -> None:
    denoiser, x_t = make(), some_x_t()
    with torch.autocast("cpu", dtype=torch.bfloat16, enabled=autocast):
        output = denoiser(x_t, TIMES)
    assert all(bool(logits.isfinite().all()) for logits in output)
    assert output.logits_token.dtype == (torch.bfloat16 if autocast else torch.float32)
    slots = torch.arange(x_t.width + 1) <= x_t.lengths[:, None]
    loss = -output.logits_token.float().log_softmax(-1)[x_t.mask][:, 0].sum()
    loss = loss - output.logits_deletions.float().log_softmax(-1)[slots][:, 1].sum()
    loss = loss - denoiser.length.log_prob(torch.tensor([3, 20])).sum()
    loss.backward()
    for name, parameter in denoiser.named_parameters():
        assert parameter.grad is not None, name
        assert bool(parameter.grad.isfinite().all()), name
        assert bool((parameter.grad != 0).any()), name


@pytest.mark.parametrize("token", [VOCABULARY.ins, VOCABULARY.eos, 99])
def test_only_regular_tokens_and_del_go_in(token: int) -> None:
    message = f"token {token} at row 1, position 2 must be regular .0…4. or DEL = 6; INS = 5"
    with pytest.raises(ValueError, match=message):
        make()(Batch.from_lists([[1], [2, 3, token]]), 2)


@pytest.mark.parametrize("t", [0, 7])
def test_times_outside_the_schedule_are_refused(t: int) -> None:
    with pytest.raises(ValueError, match=f"t must lie in 1…6, got {t}"):
        make()(some_x_t(), t)


def test_generator_decides_all_weights() -> None:
    first, second = make(seed=3).state_dict(), make(seed=3).state_dict()
    assert all(torch.equal(first[name], second[name]) for name in first)
    assert not torch.equal(first["embedding.weight"], make(seed=4).embedding.weight)


def test_a_copy_is_independent() -> None:
    denoiser, x_t = make(), some_x_t()
    other = copy.deepcopy(denoiser)
    before = denoiser(x_t, TIMES).logits_token
    assert torch.equal(other(x_t, TIMES).logits_token, before)
    with torch.no_grad():
        other.embedding.weight.zero_()
    assert torch.equal(denoiser(x_t, TIMES).logits_token, before)


def test_overfitting_one_batch() -> None:
    """Both heads learn what depends on context: a token's left neighbour, and x_t's length."""
    denoiser = make()
    generator = torch.Generator().manual_seed(0)
    tokens = torch.randint(0, 5, (16, 6), generator=generator)
    x_t = Batch(tokens, torch.randint(1, 7, (16,), generator=generator))
    left = torch.where(x_t.mask, torch.roll(tokens, 1, dims=1), 0)
    left[:, 0] = VOCABULARY.ins
    rows = torch.arange(16)
    optimizer = torch.optim.Adam(denoiser.parameters(), lr=3e-3)
    for _ in range(80):
        output = denoiser(x_t, 3)
        loss = nn.functional.cross_entropy(output.logits_token[x_t.mask], left[x_t.mask])
        at_eos = output.logits_deletions[rows, x_t.lengths]
        loss = loss + nn.functional.cross_entropy(at_eos, x_t.lengths)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    assert loss.item() < 0.2


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"vocabulary": IntegerVocabulary(7)}, "vocabulary and schedule must agree .* 7 and 5"),
        ({"max_length": 0}, "max_length must be an integer ≥ 1, got 0"),
        ({"max_deletions": -1}, "max_deletions must be an integer ≥ 0, got -1"),
    ],
)
def test_bad_configurations_are_named(changes: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make(**changes)


def test_presets() -> None:
    layers = {name: preset.backbone.num_layers for name, preset in PRESETS.items()}
    assert layers == {"tiny": 2, "small": 6, "paper-arithmetic": 6, "paper-text8": 12}
    config = preset_config(
        "paper-text8", VOCABULARY, SCHEDULE, width=24, max_deletions=4, time_embedding=False
    )
    assert (config.backbone.width, config.backbone.num_layers) == (24, 12)
    assert config.backbone.position_init == "zeros"
    assert (config.max_length, config.max_deletions, config.time_embedding) == (127, 4, False)
    denoiser = Denoiser.from_preset("tiny", VOCABULARY, SCHEDULE, max_length=9)
    assert denoiser.max_deletions == denoiser.length.max_length == 9
    with pytest.raises(ValueError, match=r"preset must be one of tiny, .* got 'huge'"):
        Denoiser.from_preset("huge", VOCABULARY, SCHEDULE)
    with pytest.raises(ValueError, match=r"depth is no field of .* its backbone 'rotary'"):
        Denoiser.from_preset("tiny", VOCABULARY, SCHEDULE, depth=3)
