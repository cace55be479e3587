"""The paper's insertion–deletion machines, and the jump parameters derived from them.

Both machines have a state A, in which tokens are inserted, and a state B, in which the next token
is read. Tokens: regular 0…K−1, INS = K, DEL = K+1. This is the slow, general derivation that
`indel.process` can be checked against; it does not contain Eqs. (10)–(12).
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple, TypeAlias

from indel.process.composition import compose
from indel.process.transducers import EPSILON, Arc, State, Transducer, Weight, is_number

INSERTING: Final = "A"
READING: Final = "B"

# Nested sequences of any number type, or arrays and tensors of them.
Vector: TypeAlias = Any
Matrix: TypeAlias = Any


class JumpParameters(NamedTuple):
    """ᾱ_t (K+2 numbers), β̄_t (K numbers) and Q̄_t (K rows of K+2 numbers) of q(x_t | x_0).

    Paper: App. B.1
    """

    insert: tuple[Weight, ...]
    delete: tuple[Weight, ...]
    replace: tuple[tuple[Weight, ...], ...]


def step_transducer(insert: Weight, matrix: Matrix) -> Transducer:
    """One step q(x_t | x_{t−1}) from α_t and Q_t of shape (K+2, K+2).

    A: α_t : ε ↦ INS and 1−α_t : ε ↦ ε to B;  B: 1 : DEL ↦ ε and [Q_t]_{xy} : x ↦ y to A

    Paper: Fig. 5 (top)
    """
    rows = [_numbers(row) for row in _plain(matrix)]
    size = len(rows)
    if size < 3 or any(len(row) != size for row in rows):
        raise ValueError(f"matrix must be (K+2)×(K+2) with K ≥ 1, got {_shape(rows)}")
    ins, delete = size - 2, size - 1
    for i in range(size):
        for x, y in ((delete, i), (i, ins)):
            if rows[x][y] != 0:
                raise ValueError(
                    "matrix must be 0 in row DEL and column INS (no token comes from DEL, none "
                    f"becomes INS), got matrix[{x}][{y}] = {rows[x][y]}"
                )
    insert = _plain(insert)
    _check_probabilities("insert", [insert])
    arcs = [
        Arc(INSERTING, INSERTING, (EPSILON, ins), insert),
        Arc(INSERTING, READING, (EPSILON, EPSILON), 1 - insert),
        Arc(READING, READING, (delete, EPSILON), 1),
    ]
    for x, row in enumerate(rows):
        _check_probabilities(f"matrix[{x}]", row)
        arcs += [Arc(READING, INSERTING, (x, y), weight) for y, weight in enumerate(row)]
    return Transducer(INSERTING, frozenset({READING}), tuple(arcs), (size, size))


def jump_transducer(insert: Vector, delete: Vector, replace: Matrix) -> Transducer:
    """Many steps q(x_t | x_0) from ᾱ_t (K+2,), β̄_t (K,) and Q̄_t (K, K+2).

    A: [ᾱ_t]_y : ε ↦ y and 1−Σ_y[ᾱ_t]_y : ε ↦ ε to B;
    B: [β̄_t]_x : x ↦ ε and [Q̄_t]_{xy} : x ↦ y to A

    Paper: Fig. 5 (middle)
    """
    alpha, beta = _numbers(insert), _numbers(delete)
    rows = [_numbers(row) for row in _plain(replace)]
    size = len(beta)
    if size < 1 or len(alpha) != size + 2 or _shape(rows) != (size, {size + 2}):
        raise ValueError(
            "insert, delete and replace must have the shapes (K+2,), (K,) and (K, K+2), "
            f"got {len(alpha)}, {size} and {_shape(rows)}"
        )
    for name, values in (("insert", alpha), ("delete", beta), ("1 − Σ insert", [1 - sum(alpha)])):
        _check_probabilities(name, values)
    arcs = [Arc(INSERTING, INSERTING, (EPSILON, y), weight) for y, weight in enumerate(alpha)]
    arcs.append(Arc(INSERTING, READING, (EPSILON, EPSILON), 1 - sum(alpha)))
    arcs += [Arc(READING, READING, (x, EPSILON), weight) for x, weight in enumerate(beta)]
    for x, row in enumerate(rows):
        _check_probabilities(f"replace[{x}]", row)
        arcs += [Arc(READING, INSERTING, (x, y), weight) for y, weight in enumerate(row)]
    return Transducer(INSERTING, frozenset({READING}), tuple(arcs), (size, size + 2))


def identity_transducer(vocab_size: int) -> Transducer:
    """No step at all, q(x_0 | x_0), where the induction over t begins.

    [ᾱ_0]_i = 0,  [β̄_0]_i = 0,  [Q̄_0]_{ij} = 1 if i = j, otherwise 0

    Paper: Eq. (4)
    """
    rows = [[int(x == y) for y in range(vocab_size + 2)] for x in range(vocab_size)]
    return jump_transducer([0] * (vocab_size + 2), [0] * vocab_size, rows)


def derive_jump(previous: Transducer, step: Transducer) -> Transducer:
    """q(x_t | x_0) from q(x_{t−1} | x_0) and q(x_t | x_{t−1}).

    Compose, sum over x_{t−1}, remove the silent middle state: `jump_parameters` of the result are
    ᾱ_t, β̄_t and Q̄_t.

    Paper: App. B.2, Eq. (10), Eq. (11), Eq. (12)
    """
    for name, machine in (("previous", previous), ("step", step)):
        if len(machine.tape_sizes) != 2:
            raise ValueError(f"{name} must have two tapes, got {len(machine.tape_sizes)}")
    machine = compose(previous, step).marginalize(1)
    for state in machine.states:
        if state != machine.initial and state not in machine.accepting:
            machine = machine.eliminate(state)
    inserting, reading = _two_states(machine)
    return machine.renamed({inserting: INSERTING, reading: READING})


def jump_parameters(transducer: Transducer) -> JumpParameters:
    """Read ᾱ, β̄ and Q̄ off the arcs of a two-state jump.

    Paper: Fig. 5 (middle)
    """
    inserting, reading = _two_states(transducer)
    size, noisy_size = transducer.tape_sizes
    if noisy_size != size + 2:
        raise ValueError(f"a jump has tapes of K and K+2 tokens, got {transducer.tape_sizes}")
    for arc in transducer.arcs:
        if not _belongs_to_jump(arc, inserting):
            raise ValueError(f"a jump has no arc like {arc}")
    weight = transducer.weight
    return JumpParameters(
        tuple(weight(inserting, inserting, (EPSILON, y)) for y in range(noisy_size)),
        tuple(weight(reading, reading, (x, EPSILON)) for x in range(size)),
        tuple(
            tuple(weight(reading, inserting, (x, y)) for y in range(noisy_size))
            for x in range(size)
        ),
    )


def _two_states(transducer: Transducer) -> tuple[State, State]:
    """The states A and B of a jump."""
    states, accepting = transducer.states, transducer.accepting
    if len(states) != 2 or accepting != {states[1]} or len(transducer.tape_sizes) != 2:
        raise ValueError(
            "a jump has two tapes, an initial state and another, accepting one; got "
            f"{len(transducer.tape_sizes)} tapes, states {states}, accepting {set(accepting)}"
        )
    return states[0], states[1]


def _belongs_to_jump(arc: Arc, inserting: State) -> bool:
    """State A reads nothing; an arc writes a token exactly if it leads to A."""
    reads, writes = (token is not EPSILON for token in arc.label)
    return reads == (arc.source != inserting) and writes == (arc.target == inserting)


def _plain(values: Any) -> Any:
    """Tensors and arrays as nested lists, so that no float32 arithmetic hides in the weights."""
    return values.tolist() if hasattr(values, "tolist") else values


def _numbers(values: Vector) -> list[Weight]:
    return [_plain(value) for value in _plain(values)]


def _shape(rows: list[list[Weight]]) -> tuple[int, set[int]]:
    return len(rows), {len(row) for row in rows}


def _check_probabilities(name: str, values: list[Weight]) -> None:
    """Refuse numbers outside [0, 1]; symbols cannot be checked."""
    for value in values:
        if is_number(value) and not 0 <= value <= 1:
            raise ValueError(f"{name} must hold probabilities in [0, 1], got {value}")
