"""Golden values of edit flows, from explicit generators: no code of indel, only numpy and scipy.

python studies/edit_flow_golden.py docs/golden/edit-flow    writes the files; README.md is there

Notation: x_1 = a b c has the sites · a · b · c ·, gaps and tokens; a state z has a token or ε (−1)
at each site. In the time s = −log(1 − κ) every site that differs from z_1 jumps there at rate 1.
"""

from __future__ import annotations

import json
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping
from functools import cache
from itertools import product
from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy.linalg import expm
from scipy.sparse import csr_matrix
from scipy.sparse.linalg import expm_multiply

Tokens = tuple[int, ...]
NOTHING = -1
LETTERS = (0, 1)
LONGEST = 4
KAPPAS = (0.3, 0.8)
EXPONENT = 3
SETTINGS: dict[str, tuple[float, float, int]] = {
    "insertions": (1.0, 0.0, 4),
    "insertions-substitutions": (0.4, 0.0, 3),
    "all-edits": (0.4, 0.3, 2),
}
"""blank, extra, and the longest x_1 of the file."""
DATA: dict[Tokens, float] = {(0, 1): 0.5, (1, 1): 0.3, (0,): 0.2}
"""The data of the marginal rates."""


class Edit(NamedTuple):
    """insert `token` before position `place`, delete the token there, or replace it by `token`."""

    kind: str
    place: int
    token: int


class State(NamedTuple):
    """What is known of x at one κ given x_1."""

    prob: float
    pending: dict[Edit, float]
    """The expected number of pending edits given x; times κ̇ / (1 − κ) they are the rates."""


def sequences(longest: int) -> list[Tokens]:
    """All of them up to a length, the short ones first."""
    return [x for length in range(longest + 1) for x in product(LETTERS, repeat=length)]


# ---------------------------------------------------------------- given x_1


@cache
def site_states(x_1: Tokens) -> tuple[list[Tokens], csr_matrix]:
    """All states z of the sites of x_1, and the generator in the time s."""
    goal = [NOTHING] + [each for token in x_1 for each in (token, NOTHING)]
    states = list(product((NOTHING, *LETTERS), repeat=len(goal)))
    number = {state: place for place, state in enumerate(states)}
    rows, columns, values = [], [], []
    for state in states:
        for site, after in enumerate(goal):
            if state[site] != after:
                reached = (*state[:site], after, *state[site + 1 :])
                rows += [number[state], number[state]]
                columns += [number[reached], number[state]]
                values += [1.0, -1.0]
    return states, csr_matrix((values, (rows, columns)), shape=(len(states), len(states)))


def start_law(x_1: Tokens, blank: float, extra: float) -> np.ndarray:
    """P(z_0 | x_1)."""
    gap = {NOTHING: 1.0 - extra} | {letter: extra / len(LETTERS) for letter in LETTERS}
    token = {NOTHING: blank} | {letter: (1.0 - blank) / len(LETTERS) for letter in LETTERS}
    law = []
    for state in site_states(x_1)[0]:
        probs = [(token if site % 2 else gap)[value] for site, value in enumerate(state)]
        law.append(float(np.prod(probs)))
    return np.array(law)


@cache
def pending_edits(x_1: Tokens) -> list[tuple[Tokens, list[Edit]]]:
    """x and the edits that are still to be made, for each state z."""
    goal = [NOTHING] + [each for token in x_1 for each in (token, NOTHING)]
    found = []
    for state in site_states(x_1)[0]:
        x: list[int] = []
        edits = []
        for now, after in zip(state, goal, strict=True):
            if now == NOTHING and after != NOTHING:
                edits.append(Edit("insert", len(x), after))
            elif now != NOTHING and after == NOTHING:
                edits.append(Edit("delete", len(x), NOTHING))
            elif now != after:
                edits.append(Edit("substitute", len(x), after))
            if now != NOTHING:
                x.append(now)
        found.append((tuple(x), edits))
    return found


def conditional(x_1: Tokens, blank: float, extra: float, kappa: float) -> dict[Tokens, State]:
    """p_κ(x | x_1) and the expected pending edits, from the exponential of the generator."""
    _, generator = site_states(x_1)
    law = expm_multiply(generator.T * -np.log1p(-kappa), start_law(x_1, blank, extra))
    probs: dict[Tokens, float] = defaultdict(float)
    weights: dict[Tokens, dict[Edit, float]] = defaultdict(lambda: defaultdict(float))
    for prob, (x, edits) in zip(law.tolist(), pending_edits(x_1), strict=True):
        if prob > 0.0:
            probs[x] += prob
            for edit in edits:
                weights[x][edit] += prob
    return {
        x: State(prob, {edit: weight / prob for edit, weight in sorted(weights[x].items())})
        for x, prob in sorted(probs.items(), key=lambda item: (len(item[0]), item[0]))
    }


def marginal(
    data: Mapping[Tokens, float], blank: float, extra: float, kappa: float
) -> dict[Tokens, State]:
    """The same for x_1 drawn from the data: what a perfect model knows."""
    probs: dict[Tokens, float] = defaultdict(float)
    weights: dict[Tokens, dict[Edit, float]] = defaultdict(lambda: defaultdict(float))
    for x_1, share in data.items():
        for x, state in conditional(x_1, blank, extra, kappa).items():
            probs[x] += share * state.prob
            for edit, number in state.pending.items():
                weights[x][edit] += share * state.prob * number
    return {
        x: State(prob, {edit: weight / prob for edit, weight in sorted(weights[x].items())})
        for x, prob in sorted(probs.items(), key=lambda item: (len(item[0]), item[0]))
    }


def edited(x: Tokens, edit: Edit) -> Tokens:
    """The sequence after an edit."""
    kept = x[edit.place :] if edit.kind == "insert" else x[edit.place + 1 :]
    new = () if edit.kind == "delete" else (edit.token,)
    return (*x[: edit.place], *new, *kept)


def reverse_rates(
    states: Mapping[Tokens, State], kappa: float
) -> dict[Tokens, dict[Tokens, float]]:
    """Rates of the process run backwards, per unit of κ: y → x at p(x) u(x → y) / p(y)."""
    rates: dict[Tokens, dict[Tokens, float]] = {x: {} for x in states}
    for x, state in states.items():
        for edit, number in state.pending.items():
            y = edited(x, edit)
            flow = state.prob * number / (1.0 - kappa)
            rates[y][x] = rates[y].get(x, 0.0) + flow / states[y].prob
    return rates


# ---------------------------------------------------------------- a model, and its bound


def model_rate(x: Tokens, edit: Edit) -> float:
    """u(edit | x) per unit of κ of a model on the sequences of up to LONGEST letters."""
    if edit.kind == "insert":
        return (0.6 + 0.3 * edit.token + 0.1 * edit.place) * (len(x) < LONGEST)
    if edit.kind == "delete":
        return 0.2 + 0.1 * edit.place
    return 0.3 if edit.token == 0 else 0.15


def edits_of(x: Tokens) -> Iterator[Edit]:
    """All edits of a sequence."""
    for slot in range(len(x) + 1):
        for token in LETTERS:
            yield Edit("insert", slot, token)
    for place, here in enumerate(x):
        yield Edit("delete", place, NOTHING)
        for token in LETTERS:
            if token != here:
                yield Edit("substitute", place, token)


def model_generator(states: list[Tokens]) -> np.ndarray:
    """The model's generator per unit of κ; it does not change with κ."""
    number = {x: place for place, x in enumerate(states)}
    generator = np.zeros((len(states), len(states)))
    for x in states:
        for edit in edits_of(x):
            rate = model_rate(x, edit)
            if rate > 0.0:
                generator[number[x], number[edited(x, edit)]] += rate
                generator[number[x], number[x]] -= rate
    return generator


def model_start(length_law: list[float]) -> np.ndarray:
    """p(x_0): its length by the law, uniform letters."""
    return np.array(
        [
            length_law[len(x)] / len(LETTERS) ** len(x) if len(x) < len(length_law) else 0.0
            for x in sequences(LONGEST)
        ]
    )


def nodes_of_v(count: int) -> list[tuple[float, float]]:
    """Gauss–Legendre nodes and weights for v in (0, 1), κ = 1 − v², dκ / (1 − κ) = (2 / v) dv."""
    points, weights = np.polynomial.legendre.leggauss(count)
    return [
        ((1 + point) / 2, weight / 2)
        for point, weight in zip(points.tolist(), weights.tolist(), strict=True)
    ]


class Bound(NamedTuple):
    """All in nats."""

    nll: float
    """−log p(x_1) of the model, from the exponential of its generator."""
    source: float
    """KL(q(x_0 | x_1) ‖ p(x_0))"""
    path: float
    """E_q ∫ Σ_edits [λ log(λ / u) − λ + u] dκ"""
    gap: float
    """KL from q to the model's own paths to x_1: source + path − nll, found independently."""


def bound(
    x_1: Tokens, blank: float, extra: float, length_law: list[float], nodes: int = 48
) -> Bound:
    """The bound on −log p(x_1), and how far it is off, by Doob's h-transform of the model."""
    states = sequences(LONGEST)
    number = {x: place for place, x in enumerate(states)}
    generator, start = model_generator(states), model_start(length_law)
    goal = number[x_1]
    to_goal = expm(generator)[:, goal]
    total = float(start @ to_goal)
    source = gap = 0.0
    for x, state in conditional(x_1, blank, extra, 0.0).items():
        posterior = start[number[x]] * to_goal[number[x]] / total
        source += state.prob * np.log(state.prob / start[number[x]])
        gap += state.prob * np.log(state.prob / posterior)
    path = 0.0
    for v, weight in nodes_of_v(nodes):
        h = expm(generator * v * v)[:, goal]
        for x, state in conditional(x_1, blank, extra, 1.0 - v * v).items():
            here = there = 0.0
            for edit in edits_of(x):
                rate = state.pending.get(edit, 0.0) / (v * v)
                model = model_rate(x, edit)
                if model > 0.0:
                    aimed = model * h[number[edited(x, edit)]] / h[number[x]]
                    log = np.log(rate) if rate > 0.0 else 0.0
                    here += rate * (log - np.log(model)) - rate + model
                    there += rate * (log - np.log(aimed)) - rate + aimed
            path += weight * 2.0 * v * state.prob * here
            gap += weight * 2.0 * v * state.prob * there
    return Bound(-float(np.log(total)), source, path, gap)


BOUNDS: dict[str, tuple[list[float], int]] = {
    "insertions": ([1.0], 3),
    "insertions-substitutions": ([0.4, 0.3, 0.2, 0.1], 3),
    "all-edits": ([0.4, 0.3, 0.2, 0.1], 1),
}
"""The law of the length of x_0 under the model, and the longest x_1."""


# ---------------------------------------------------------------- files


def plain(x: Tokens, state: State) -> dict[str, object]:
    """The state as a file has it."""

    def table(kind: str, rows: int) -> list[list[float]]:
        return [
            [_rounded(state.pending.get(Edit(kind, row, token), 0.0)) for token in LETTERS]
            for row in range(rows)
        ]

    delete = [state.pending.get(Edit("delete", place, NOTHING), 0.0) for place in range(len(x))]
    return {
        "x": list(x),
        "probability": _rounded(state.prob),
        "insert": table("insert", len(x) + 1),
        "delete": list(map(_rounded, delete)),
        "substitute": table("substitute", len(x)),
    }


def _rounded(value: float) -> float:
    return float(f"{value:.10g}")


def content(setting: str) -> dict[str, object]:
    """What the file of a setting holds; its README explains the fields."""
    blank, extra, longest = SETTINGS[setting]
    length_law, longest_bound = BOUNDS[setting]
    times = []
    for kappa in KAPPAS:
        t = kappa ** (1.0 / EXPONENT)
        states = marginal(DATA, blank, extra, kappa)
        backwards = reverse_rates(states, kappa)
        of_data = [
            plain(x, state)
            | {"reverse": [[list(y), _rounded(rate)] for y, rate in sorted(backwards[x].items())]}
            for x, state in states.items()
        ]
        given = [
            {
                "x_1": list(x_1),
                "states": [
                    plain(x, state) for x, state in conditional(x_1, blank, extra, kappa).items()
                ],
            }
            for x_1 in sequences(longest)
        ]
        factor = EXPONENT * t ** (EXPONENT - 1) / (1.0 - kappa)
        times.append(
            {"kappa": kappa, "t": _rounded(t), "rate_factor": _rounded(factor)}
            | {"given": given, "data": of_data}
        )
    bounds = []
    for x_1 in sequences(longest_bound):
        found = bound(x_1, blank, extra, length_law)
        # The integrals are accurate to about 1e−8.
        values = {name: float(f"{value:.7f}") for name, value in found._asdict().items()}
        bounds.append({"x_1": list(x_1)} | values)
    return {
        "blank": blank,
        "extra": extra,
        "data": [[list(x), share] for x, share in DATA.items()],
        "times": times,
        "model_lengths": length_law,
        "bounds": bounds,
    }


def main() -> None:
    from indel.atomic_files import write_output

    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for setting in SETTINGS:
        path = folder / f"{setting}.json"
        text = json.dumps(content(setting), separators=(",", ":"))
        write_output(path, (text.replace('{"x', '\n{"x') + "\n").encode())
        print(path)


if __name__ == "__main__":
    main()
