"""The stack is T5's encoder, and padding does not reach the sequences."""

import jaxtyping
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from transformers import T5Config, T5EncoderModel
from transformers.models.t5.modeling_t5 import T5Attention

from indel.model import Transformer, TransformerConfig, load_t5_encoder
from indel.model.positions import RelativePositions, distance_buckets

SIZES = {"width": 48, "num_layers": 3, "num_heads": 4, "head_width": 8, "feedforward_width": 80}


def small(**changes: object) -> TransformerConfig:
    return TransformerConfig(**(SIZES | changes))


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def t5_encoder(activation: str, num_buckets: int = 32, max_distance: int = 128) -> T5EncoderModel:
    torch.manual_seed(0)
    config = T5Config(
        vocab_size=50,
        d_model=SIZES["width"],
        d_kv=SIZES["head_width"],
        d_ff=SIZES["feedforward_width"],
        num_layers=SIZES["num_layers"],
        num_heads=SIZES["num_heads"],
        feed_forward_proj=activation,
        relative_attention_num_buckets=num_buckets,
        relative_attention_max_distance=max_distance,
        dropout_rate=0.0,
    )
    model = T5EncoderModel(config).eval()
    # Distances must matter for a wrong bucket to show, and norms and scores must not be trivial.
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "relative_attention_bias" in name:
                parameter.normal_(std=2.0)
            elif "layer_norm" in name:
                parameter.uniform_(0.5, 1.5)
            elif "SelfAttention.q" in name:
                parameter.mul_(2.0)
    return model


def front_masks(lengths: list[int], width: int) -> Tensor:
    return torch.arange(width) < torch.tensor(lengths)[:, None]


@pytest.mark.parametrize("activation", ["relu", "gated-gelu"])
@pytest.mark.parametrize(("num_buckets", "max_distance"), [(32, 128), (20, 50)])
def test_it_is_t5(activation: str, num_buckets: int, max_distance: int) -> None:
    theirs = t5_encoder(activation, num_buckets, max_distance)
    config = small(activation=activation, num_buckets=num_buckets, max_distance=max_distance)
    ours = Transformer(config)
    load_t5_encoder(ours, theirs.state_dict())
    ids = torch.randint(0, 50, (4, 200), generator=seeded())
    mask = front_masks([200, 7, 150, 1], 200)
    with torch.no_grad():
        expected = theirs(input_ids=ids, attention_mask=mask.long()).last_hidden_state
        hidden = ours(theirs.shared(ids), mask)
    torch.testing.assert_close(hidden[mask], expected[mask], atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize(("num_buckets", "max_distance"), [(32, 128), (18, 128), (8, 3), (4, 2)])
def test_buckets_are_t5s(num_buckets: int, max_distance: int) -> None:
    offsets = torch.arange(-300, 301)
    expected = T5Attention._relative_position_bucket(
        offsets, num_buckets=num_buckets, max_distance=max_distance
    )
    buckets = distance_buckets(num_buckets // 2, max_distance)
    ours = buckets[offsets.abs().clamp_max(max_distance)] + (offsets > 0) * (num_buckets // 2)
    assert ours.tolist() == expected.tolist()


def test_initial_weights_have_t5s_spread() -> None:
    sizes = {"width": 256, "head_width": 32, "num_heads": 8, "feedforward_width": 512}
    stack = Transformer(small(**sizes, num_layers=1), generator=seeded())
    torch.manual_seed(0)
    theirs = T5EncoderModel(
        T5Config(vocab_size=5, d_model=256, d_kv=32, num_heads=8, d_ff=512, num_layers=1)
    ).state_dict()
    attention = "encoder.block.0.layer.0.SelfAttention"
    dense = "encoder.block.0.layer.1.DenseReluDense"
    layer = stack.layers[0]
    q, k, v = layer.attention.qkv.weight.chunk(3)
    for weight, name in (
        (q, f"{attention}.q.weight"),
        (k, f"{attention}.k.weight"),
        (v, f"{attention}.v.weight"),
        (layer.attention.out.weight, f"{attention}.o.weight"),
        (layer.feedforward.inner.weight, f"{dense}.wi.weight"),
        (layer.feedforward.outer.weight, f"{dense}.wo.weight"),
    ):
        assert weight.shape == theirs[name].shape
        assert weight.std().item() == pytest.approx(theirs[name].std().item(), rel=0.02), name


@given(
    lengths=st.lists(st.integers(1, 9), min_size=1, max_size=3),
    padding=st.integers(0, 7),
    seed=st.integers(0, 99),
)
@settings(deadline=None, max_examples=15)
def test_padding_and_neighbours_do_not_matter(lengths: list[int], padding: int, seed: int) -> None:
    stack = Transformer(small(), generator=seeded(seed))
    width = max(lengths) + padding
    embedded = torch.randn(len(lengths), width, SIZES["width"], generator=seeded(seed + 1))
    with torch.no_grad():
        hidden = stack(embedded, front_masks(lengths, width))
        for row, length in enumerate(lengths):
            alone = stack(embedded[row : row + 1, :length], torch.ones(1, length).bool())
            torch.testing.assert_close(hidden[row, :length], alone[0], atol=1e-5, rtol=1e-5)


def test_padding_is_finite_and_gets_no_gradient() -> None:
    stack = Transformer(small(), generator=seeded())
    embedded = torch.randn(3, 6, SIZES["width"], generator=seeded()).requires_grad_()
    mask = front_masks([6, 2, 1], 6)
    hidden = stack(embedded, mask)
    assert bool(hidden.isfinite().all())
    (hidden[mask] ** 2).sum().backward()
    assert embedded.grad is not None
    assert bool((embedded.grad[~mask] == 0).all())
    assert bool((embedded.grad[mask] != 0).any(dim=-1).all())
    for name, parameter in stack.named_parameters():
        assert parameter.grad is not None, name
        assert bool(parameter.grad.isfinite().all()), name
        assert bool((parameter.grad != 0).any()), name


def test_positions_are_shared_and_relative() -> None:
    stack = Transformer(small(), generator=seeded())
    assert [name for name, _ in stack.named_parameters() if "positions" in name] == [
        "positions.table"
    ]
    assert "positions.bucket_of_distance" not in stack.state_dict()
    biases = stack.positions(7)
    torch.testing.assert_close(biases[:, 1:, 1:], biases[:, :-1, :-1])
    torch.testing.assert_close(biases[:, :4, :4], stack.positions(4))


def heads(init: str, num_heads: int, length: int) -> Tensor:
    """The attention of each head by position alone: (heads, queries, keys)."""
    positions = RelativePositions(num_heads, 32, 128, init)
    return positions(length).softmax(dim=-1).detach()


def test_local_heads_look_where_they_say() -> None:
    previous, following, near, far = heads("local", 4, 128)
    assert float(previous.diagonal(-1).min()) > 0.95
    assert float(following.diagonal(1).min()) > 0.95
    distance = (torch.arange(128)[:, None] - torch.arange(128)).abs()
    middle = slice(32, 96)
    reach_near = (near * distance).sum(-1)[middle].mean()
    reach_far = (far * distance).sum(-1)[middle].mean()
    assert float(reach_near) < 3.0
    assert 8.0 < float(reach_far) < 32.0
    for head in (near, far):
        torch.testing.assert_close(head, head.flip(0, 1))  # both directions alike
        falls = head[64, 64:].diff()
        assert bool((falls <= 0).all())
        assert bool((falls < 0).any())


@pytest.mark.parametrize("num_heads", [1, 3, 12, 16])
def test_further_local_heads_look_two_three_and_more_tokens_away(num_heads: int) -> None:
    every = heads("local", num_heads, 60)
    assert torch.equal(every[:4], heads("local", 4, 60)[:num_heads])
    for number, head in enumerate(every[4:]):
        distance = 2 + number // 2
        offset = distance if number % 2 else -distance
        assert float(head.diagonal(offset).min()) > 0.95


def test_a_head_is_given_no_distance_that_others_share() -> None:
    """32 buckets tell apart 0…7 in both directions: 4 + 2·6 heads, and then all comes again."""
    assert torch.equal(heads("local", 20, 20)[16:], heads("local", 4, 20))
    few = RelativePositions(6, 4, 128, "local")(9).detach()
    assert torch.equal(few[4:], few[:2])


def test_zeros_are_zeros_and_nothing_else_differs() -> None:
    assert torch.equal(heads("zeros", 4, 5), torch.full((4, 5, 5), 0.2))
    local = Transformer(small(position_init="local"), generator=seeded()).state_dict()
    zeros = Transformer(small(position_init="zeros"), generator=seeded()).state_dict()
    different = [name for name in local if not torch.equal(local[name], zeros[name])]
    assert different == ["positions.table"]


def test_generator_decides_all_weights() -> None:
    torch.manual_seed(1)
    first = Transformer(small(), generator=seeded(5)).state_dict()
    torch.manual_seed(2)
    second = Transformer(small(), generator=seeded(5)).state_dict()
    assert all(torch.equal(first[name], second[name]) for name in first)


def test_dropout_only_in_training() -> None:
    stack = Transformer(small(dropout=0.5), generator=seeded())
    embedded, mask = torch.randn(1, 5, SIZES["width"], generator=seeded()), torch.ones(1, 5).bool()
    torch.manual_seed(0)
    assert not torch.equal(stack(embedded, mask), stack(embedded, mask))
    stack.eval()
    assert torch.equal(stack(embedded, mask), stack(embedded, mask))


def test_bfloat16_autocast_is_close() -> None:
    stack = Transformer(small(), generator=seeded())
    embedded = torch.randn(2, 9, SIZES["width"], generator=seeded())
    mask = front_masks([9, 4], 9)
    exact = stack(embedded, mask)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        rough = stack(embedded, mask)
    assert bool(rough.isfinite().all())
    torch.testing.assert_close(rough[mask].float(), exact[mask], atol=0.1, rtol=0.1)
    rough.float().square().sum().backward()
    assert all(bool(p.grad.isfinite().all()) for p in stack.parameters() if p.grad is not None)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"width": 0}, "width must be an integer ≥ 1, got 0"),
        ({"num_layers": 2.0}, r"num_layers must be an integer ≥ 1, got 2\.0"),
        ({"num_heads": True}, "num_heads must be an integer ≥ 1, got True"),
        ({"head_width": -8}, "head_width must be an integer ≥ 1, got -8"),
        ({"feedforward_width": 0}, "feedforward_width must be an integer ≥ 1, got 0"),
        ({"activation": "tanh"}, "activation must be one of relu, gated-gelu; got 'tanh'"),
        ({"num_buckets": 2}, "num_buckets must be an integer ≥ 4, got 2"),
        ({"num_buckets": 33}, "num_buckets must be even, got 33"),
        ({"max_distance": 8}, "max_distance must be an integer ≥ 9, got 8"),
        ({"dropout": 1.0}, r"dropout must be a number ≥ 0 and < 1, got 1\.0"),
        ({"position_init": "far"}, "position_init must be one of local, zeros; got 'far'"),
    ],
)
def test_bad_sizes_are_named(
    changes: dict[str, object], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The tests' type checker would refuse some of these before the configuration sees them.
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)
    data = {**small().to_dict(), **changes}
    with pytest.raises(ValueError, match=message):
        TransformerConfig.from_dict(data)


def test_config_is_plain_data() -> None:
    config = small(activation="gated-gelu", dropout=0.1)
    assert TransformerConfig.from_dict(config.to_dict()) == config
    data = config.to_dict()
    del data["width"]
    with pytest.raises(ValueError, match="missing: width; unknown: none"):
        TransformerConfig.from_dict(data)
    with pytest.raises(ValueError, match="missing: none; unknown: depth"):
        TransformerConfig.from_dict({**config.to_dict(), "depth": 3})


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"num_layers": 2}, "more than 2 layers"),
        ({"num_layers": 4}, r"lack encoder\.block\.3"),
        ({"activation": "gated-gelu"}, r"lack encoder\.block\.0.*wi_0"),
        ({"feedforward_width": 81}, r"layers\.0\.feedforward\.inner\.weight has shape \(81, 48\)"),
        ({"num_buckets": 16}, r"positions\.table has shape \(16, 4\)"),
    ],
)
def test_other_t5_weights_are_refused(changes: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        load_t5_encoder(Transformer(small(**changes)), t5_encoder("relu").state_dict())
