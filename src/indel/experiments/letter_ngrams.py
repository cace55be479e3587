"""A yardstick for text: interpolated counts of letters, measured on the test part.

p_1(c) = (n(c) + T/K) / (n + T), and with one letter more of history h = (oldest letter, h′)
p(c | h) = (n(h c) + T(h) p(c | h′)) / (n(h) + T(h)),
where n counts the training part and T(h) is how many different letters followed h (Witten–Bell).
"""

from __future__ import annotations

import json
from datetime import UTC, datetime

import numpy as np
from jaxtyping import Float, Int

from indel.atomic_files import whole_file
from indel.data import open_data
from indel.data.chunks import ChunkStream
from indel.experiments.requests import Request

NAME = "ngrams"
ORDERS = 6

Tokens = Int[np.ndarray, " _"]


def bits_per_letter(train: Tokens, test: Tokens, *, orders: int, size: int) -> list[float]:
    """Bits per letter of the test text for groups of 1…orders letters, letters being 0…size−1.

    >>> text = np.array([0, 1] * 500)
    >>> [round(bits, 2) for bits in bits_per_letter(text, text, orders=2, size=2)]
    [1.0, 0.0]
    """
    prob = np.full(len(test), 1.0 / size)
    found = []
    for order in range(1, orders + 1):
        prob = _with_longer_history(prob, train, test, order, size)
        found.append(float(-np.log2(prob).mean()))
    return found


def _with_longer_history(
    prob: Float[np.ndarray, " _"], train: Tokens, test: Tokens, order: int, size: int
) -> Float[np.ndarray, " _"]:
    """p(c | h) of each test letter from p(c | h′); the first letters keep their short history."""
    groups, counts = np.unique(_codes(train, order, size), return_counts=True)
    histories, first = np.unique(groups // size, return_index=True)
    followers = np.diff(np.append(first, len(groups)))
    totals = np.add.reduceat(counts, first)
    asked = _codes(test, order, size)
    count = _look_up(groups, counts, asked)
    total = _look_up(histories, totals, asked // size)
    different = _look_up(histories, followers, asked // size)
    longer = prob.copy()
    shorter = prob[order - 1 :]
    seen = total > 0
    longer[order - 1 :][seen] = ((count + different * shorter)[seen]) / (total + different)[seen]
    return longer


def _codes(text: Tokens, order: int, size: int) -> Int[np.ndarray, " groups"]:
    """Each group of `order` letters as one number, oldest letter first."""
    length = len(text) - order + 1
    codes = np.zeros(length, dtype=np.int64)
    for offset in range(order):
        codes *= size
        codes += text[offset : offset + length]
    return codes


def _look_up(
    keys: Int[np.ndarray, " keys"], values: Int[np.ndarray, " keys"], asked: Tokens
) -> Int[np.ndarray, " _"]:
    """The value of each key that is asked for, 0 for keys that are not there; keys are sorted."""
    place = np.searchsorted(keys, asked).clip(max=len(keys) - 1)
    return np.where(keys[place] == asked, values[place], 0)


def reproduce_ngrams(request: Request) -> None:
    """Letter groups of 1…6 on the text of Table 2, trained and tested on all of its parts."""
    sample = request.scale == "tiny"
    options = {} if sample or request.data is None else {"path": request.data}
    data = open_data("text8-sample" if sample else "text8", **options)
    assert isinstance(data, ChunkStream)
    bits = bits_per_letter(
        data.tokens("train"), data.tokens("test"), orders=ORDERS, size=data.vocabulary.size
    )
    record = {
        "date": f"{datetime.now(UTC):%Y-%m-%d}",
        "command": f"indel reproduce ngrams --scale {request.scale}",
        "train_characters": data.size("train"),
        "test_characters": data.size("test"),
        "bits_per_character": bits,
    }
    request.folder.mkdir(parents=True, exist_ok=True)
    with whole_file(request.folder / "ngrams.json") as file:
        file.write((json.dumps(record, indent=2) + "\n").encode())
    for order, each in enumerate(bits, start=1):
        request.say(f"groups of {order}: {each:.3f} bits per character")
