"""p_θ(x_{t−1} | x_t) from the formulas of the paper, in plain loops."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

import oracles
from oracles import OracleStep, Tokens


@dataclass
class Reference:
    """p_θ(x_{t−1} | x_t) for one x_t: laws of each token's value and of the DELs in each slot."""

    values: list[np.ndarray]
    counts: list[Callable[[int], float]]
    possible: bool
    del_: int

    def prob(self, x_prev: Tokens) -> float:
        runs = [0]
        values = []
        for token in x_prev:
            if token == self.del_:
                runs[-1] += 1
            else:
                values.append(token)
                runs.append(0)
        if len(values) != len(self.values):
            return 0.0
        factors = [law[value] for law, value in zip(self.values, values, strict=True)]
        factors += [law(run) for law, run in zip(self.counts, runs, strict=True)]
        return math.prod(factors)


def reference(
    steps: tuple[OracleStep, ...],
    seen: Tokens,
    logits_token: np.ndarray,
    logits_deletions: np.ndarray,
    choice: str,
) -> Reference:
    """Section 5 of the design, t = len(steps), for the weights of either choice."""
    size, now, earlier = steps[0].vocab_size, steps[-1], steps[:-1]
    insert, delete, _ = oracles.jump_parameters(earlier, size)
    delete_now = oracles.jump_parameters(steps, size)[1]
    never_deleted = math.prod(1 - step.delete for step in earlier)
    kept = np.eye(size)
    for step in earlier:
        kept = kept @ np.array(step.transition)
    alive = insert[: size + 1].sum()
    if choice == "joint":
        keep, put, each = (1 - insert.sum()) * never_deleted, 1.0, delete_now[0]
    else:
        # Each kind of edit with its own law; but nothing for an edit that q cannot make.
        keep = 1.0 if never_deleted > 0 else 0.0
        put = 1 / alive if alive > 0 else 0.0
        each = 1.0 if delete_now[0] > 0 else 0.0

    column = np.zeros((size + 1, size + 2))
    for z in range(size + 2):
        for y in range(size):
            value = 0.0 if z == size else np.array(now.transition)[y, min(z, size - 1)]
            column[y, z] = now.delete if z == size + 1 else (1 - now.delete) * value
        value = 0.0 if z == size else now.inserted[min(z, size - 1)]
        column[size, z] = (
            now.delete_inserted if z == size + 1 else (1 - now.delete_inserted) * value
        )

    values, possible = [], True
    for z, logits in zip(seen, logits_token, strict=True):
        guess = np.exp(logits - logits.max())
        law = np.zeros(size + 1)
        for y in range(size + 1):
            from_x_0 = sum(guess[x] * kept[x, y] for x in range(size)) if y < size else 0.0
            law[y] = (keep * from_x_0 + put * guess[size] * insert[y]) * column[y, z]
        possible &= law.sum() > 0
        values.append(law / law.sum() if law.sum() > 0 else law)

    rho = 1 - delete[0] / delete_now[0] if delete_now[0] > 0 else 0.0
    loop = insert[size + 1]

    def table(deleted: int, observed: int) -> float:
        """M_{t−1}[n, n_obs]: Binomial(n, ρ) explicit ones, NB(n_explicit + 1) inserted ones."""
        total = 0.0
        for explicit in range(min(deleted, observed) + 1):
            ways = math.comb(deleted, explicit)
            binomial = ways * rho**explicit * (1 - rho) ** (deleted - explicit)
            extra = observed - explicit
            total += binomial * (
                math.comb(extra + explicit, extra) * loop**extra * (1 - loop) ** (explicit + 1)
            )
        return total

    def count_law(logits: np.ndarray) -> Callable[[int], float]:
        weights = [math.exp(logits[n] - logits.max()) * each**n for n in range(len(logits))]
        return lambda observed: sum(
            weight / sum(weights) * table(deleted, observed)
            for deleted, weight in enumerate(weights)
            if weight > 0
        )

    return Reference(values, [count_law(row) for row in logits_deletions], possible, size + 1)
