"""Which optimizer trains which parameters: Adam(W) for all, or Muon for the hidden matrices."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import Any, overload

import torch
from jaxtyping import Float
from torch import Tensor, nn

from indel.model.noise_levels import NoiseLevelEmbedding
from indel.processor import has_bfloat16
from indel.training.config import OptimizerSection

# Keller Jordan's quintic: four steps bring singular values from [1e−2, 1] to about [0.7, 1.2].
_QUINTIC = (3.4445, -4.7750, 2.0315)
_ITERATIONS = 4


class Muon(torch.optim.Optimizer):
    """Momentum whose update is made orthogonal: W ← W − lr·√max(1, rows/columns)·orth(g + μ·m).

    Each group has `parts`, the number of matrices that are stacked in one weight (q, k and v; the
    two of a gated layer): each is made orthogonal alone. All matrices of one shape are made
    orthogonal in one batched product. torch's own Muon iterates in bfloat16; here that is so only
    on devices that are fast with it, otherwise it is float32, whatever the weights are; `dtype`
    decides it.

    Jordan et al. 2024, "Muon: an optimizer for hidden layers in neural networks"
    """

    def __init__(
        self,
        params: Iterable[dict[str, Any]],
        *,
        lr: float,
        momentum: float = 0.95,
        weight_decay: float = 0.0,
        dtype: torch.dtype | None = None,
    ) -> None:
        defaults = {"lr": lr, "momentum": momentum, "weight_decay": weight_decay, "parts": 1}
        super().__init__(params, defaults)
        self.dtype = dtype
        for group in self.param_groups:
            for weight in group["params"]:
                if weight.dim() != 2 or len(weight) % group["parts"]:
                    raise ValueError(
                        f"Muon trains matrices of {group['parts']} equal parts, "
                        f"got shape {tuple(weight.shape)}"
                    )

    @overload
    def step(self, closure: None = None) -> None: ...
    @overload
    def step(self, closure: Callable[[], float]) -> float: ...
    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> float | None:
        """One update of all weights that have a gradient."""
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        # The same shape may occur in several groups: square q, k, v and square outputs.
        alike: dict[Any, list[tuple[Tensor, Tensor, dict[str, Any]]]] = defaultdict(list)
        for group in self.param_groups:
            for weight in group["params"]:
                if weight.grad is not None:
                    matrices = self._direction(weight, weight.grad, group)
                    alike[matrices.shape[1:], matrices.device].append((weight, matrices, group))
        for same in alike.values():
            updates = orthogonalized(torch.cat([m for _, m, _ in same]), self.dtype)
            counts = [len(matrices) for _, matrices, _ in same]
            each = torch.split_with_sizes(updates, counts)
            for (weight, _, group), update in zip(same, each, strict=True):
                _apply(weight, update, group)
        return loss

    def _direction(
        self, weight: Tensor, grad: Tensor, group: dict[str, Any]
    ) -> Float[Tensor, "parts rows columns"]:
        """The momentum with Nesterov's look ahead, as one matrix for each part."""
        state = self.state[weight]
        if "momentum" not in state:
            state["momentum"] = torch.zeros_like(weight)
        momentum: Tensor = state["momentum"]
        momentum.lerp_(grad, 1.0 - group["momentum"])
        return torch.unflatten(grad.lerp(momentum, group["momentum"]), 0, (group["parts"], -1))


def _apply(
    weight: Tensor, update: Float[Tensor, "parts rows columns"], group: dict[str, Any]
) -> None:
    rows, columns = update.shape[1:]
    weight.mul_(1.0 - group["lr"] * group["weight_decay"])
    scale = max(1.0, rows / columns) ** 0.5
    weight.add_(update.flatten(0, 1).to(weight.dtype), alpha=-group["lr"] * scale)


def orthogonalized(
    matrices: Float[Tensor, "*stack rows columns"], dtype: torch.dtype | None = None
) -> Float[Tensor, "*stack rows columns"]:
    """U Vᵀ of each M = U S Vᵀ, nearly: X ← aX + (bA + cA²)X, A = XXᵀ, four times.

    Singular values above a hundredth of the norm come out between about 0.7 and 1.2. The products
    are of the given type; None: bfloat16 where that is fast, otherwise float32.
    """
    if dtype is None:
        dtype = torch.bfloat16 if has_bfloat16(matrices.device) else torch.float32
    wide = matrices.float()
    tall = wide.shape[-2] > wide.shape[-1]
    wide = wide.mT if tall else wide
    norm = torch.linalg.matrix_norm(wide, keepdim=True)
    # A gradient of nothing stays nothing.
    wide = torch.where(norm > 0, wide / norm, 0.0).to(dtype).contiguous()
    oblong = wide.shape[-1] >= 2 * wide.shape[-2]
    iterate = _by_gram_matrix if oblong else _by_matrix
    stack = wide.reshape(-1, *wide.shape[-2:])
    # A CPU is faster with one matrix after the other, which stays in its cache.
    if stack.device.type == "cpu":
        stack = torch.cat([iterate(matrix[None]) for matrix in stack])
    else:
        stack = iterate(stack)
    wide = stack.reshape(wide.shape).float()
    return wide.mT if tall else wide


def _by_matrix(wide: Float[Tensor, "stack rows columns"]) -> Float[Tensor, "stack rows columns"]:
    a, b, c = _QUINTIC
    for _ in range(_ITERATIONS):
        square = wide @ wide.mT
        wide = torch.baddbmm(
            wide, torch.baddbmm(square, square, square, beta=b, alpha=c), wide, beta=a
        )
    return wide


def _by_gram_matrix(
    wide: Float[Tensor, "stack rows columns"],
) -> Float[Tensor, "stack rows columns"]:
    """The same in two products with the long side: all factors are polynomials of A = XXᵀ.

    X_{k+1} = P_k X_k with P_k = a + bA_k + cA_k², so A_{k+1} = P_k² A_k, and X_n = (Π P_k) X_0.
    """
    a, b, c = _QUINTIC
    square = wide @ wide.mT
    product = _polynomial(square, a, b, c)
    factor = product
    for _ in range(_ITERATIONS - 1):
        square = factor @ (factor @ square)
        factor = _polynomial(square, a, b, c)
        product = factor @ product
    return product @ wide


def _polynomial(
    square: Float[Tensor, "stack rows rows"], a: float, b: float, c: float
) -> Float[Tensor, "stack rows rows"]:
    """a + bA + cA²."""
    factor = torch.baddbmm(square, square, square, beta=b, alpha=c)
    factor.diagonal(dim1=-2, dim2=-1).add_(a)
    return factor


def make_optimizers(
    model: nn.Module, section: OptimizerSection, *, muon_dtype: torch.dtype | None = None
) -> list[torch.optim.Optimizer]:
    """The optimizers of a denoiser, or of any module whose stacks are called `backbone`.

    What needs no gradient, such as a table of lengths that is fitted, has none.

    "adam" and "adamw" train all parameters, with weight decay for matrices of the backbone alone.
    "muon" trains the backbone's linear layers by Muon: their gradients have few strong directions
    and many weak ones, which orthogonal updates learn at one pace. Embeddings, heads, norms and
    position biases are look-ups, outputs and vectors, for which that is not so: AdamW.
    """
    hidden = hidden_matrices(model)
    taken = {id(weight) for weight, _ in hidden}
    rest = [w for w in model.parameters() if w.requires_grad and id(w) not in taken]
    embeddings = _embeddings(model)
    of_tokens = {id(weight) for weight in embeddings}
    rest = [w for w in rest if id(w) not in of_tokens]
    rate = section.embedding_learning_rate
    looked_up: dict[str, Any] = {"params": embeddings} | ({} if rate is None else {"lr": rate})
    betas = (section.beta1, section.beta2)
    # Fused: one pass over weights and moments, where large tables would take ten.
    adam: dict[str, Any] = {
        "lr": section.learning_rate,
        "betas": betas,
        "eps": section.epsilon,
        "fused": True,
    }
    # A backbone without linear layers leaves nothing to Muon.
    if section.name == "muon" and hidden:
        groups = [
            {"params": [w for w, parts in hidden if parts == wanted], "parts": wanted}
            for wanted in sorted({parts for _, parts in hidden})
        ]
        muon = Muon(
            groups,
            lr=section.muon_learning_rate,
            momentum=section.momentum,
            weight_decay=section.weight_decay,
            dtype=muon_dtype,
        )
        return [muon, torch.optim.AdamW([looked_up, {"params": rest}], **adam, weight_decay=0.0)]
    matrices = [w for w, _ in hidden]
    if section.name == "adam":
        return [torch.optim.Adam([looked_up, {"params": [*matrices, *rest]}], **adam)]
    decayed = {"params": matrices, "weight_decay": section.weight_decay}
    return [torch.optim.AdamW([decayed, looked_up, {"params": rest}], **adam, weight_decay=0.0)]


def _embeddings(model: nn.Module) -> list[Tensor]:
    """The embeddings of tokens and times: most of their rows get a gradient only now and then."""
    return [
        layer.weight
        for name, layer in model.named_modules()
        if isinstance(layer, nn.Embedding | NoiseLevelEmbedding)
        and not _in_backbone(name)
        and layer.weight.requires_grad
    ]


def hidden_matrices(model: nn.Module) -> list[tuple[Tensor, int]]:
    """The weights of the backbones' linear layers, and how many matrices are stacked in each."""
    found = []
    for name, layer in model.named_modules():
        if _in_backbone(name) and isinstance(layer, nn.Linear) and layer.weight.requires_grad:
            parts = 1
            if name.endswith(".qkv"):
                parts = 3
            elif name.endswith(".inner") and layer.weight.shape[0] == 2 * _outer_width(model, name):
                parts = 2
            found.append((layer.weight, parts))
    return found


def _in_backbone(name: str) -> bool:
    return "backbone" in name.split(".")


def _outer_width(model: nn.Module, inner: str) -> int:
    """The number of inputs of the layer behind a feed-forward network's inner one."""
    outer = model.get_submodule(inner.removesuffix("inner") + "outer")
    assert isinstance(outer, nn.Linear)
    return outer.in_features
