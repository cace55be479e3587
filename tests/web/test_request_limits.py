from __future__ import annotations

import pytest

from indel.web import request_limits


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (7, "must be text, got int"),
        (None, "must be text, got NoneType"),
        ("a" * 1_000_000, "has 1,000,000 characters; at most 10 are taken here"),
        ("ab\ud800", "half of a surrogate pair at position 2"),
    ],
)
def test_bad_text(value: object, words: str) -> None:
    with pytest.raises(ValueError, match=f"^the text .*{words}"):
        request_limits.text("the text", value, 10)


def test_hostile_text_is_taken_as_it_is() -> None:
    for value in ("", "\0", "<script>", "\u202e", "🧑‍🚀"):
        assert request_limits.text("the text", value, 10) == value


def test_letters_are_counted_before_and_after_digits_become_words() -> None:
    assert request_limits.letters("the text", "Ab 1", 10) == "ab one"
    with pytest.raises(ValueError, match="has 11 characters; at most 10"):
        request_limits.letters("the text", "7 3", 10)
    with pytest.raises(ValueError, match="no letter"):
        request_limits.letters("the text", "\0…", 10)


@pytest.mark.parametrize("value", [True, "3", 2.5, float("nan"), float("inf"), None, [3]])
def test_no_whole_number(value: object) -> None:
    with pytest.raises(ValueError, match="draws must be a whole number in 1…32, got "):
        request_limits.whole("draws", value, 1, 32)


@pytest.mark.parametrize("value", [0, 33, -1, 10**30])
def test_whole_number_out_of_range(value: int) -> None:
    with pytest.raises(ValueError, match="draws must lie in 1…32, got "):
        request_limits.whole("draws", value, 1, 32)


@pytest.mark.parametrize("value", [-0.1, 1.1, float("nan"), True, "0.5"])
def test_bad_share(value: object) -> None:
    with pytest.raises(ValueError, match="rate must lie in 0…1"):
        request_limits.share("rate", value)


@pytest.mark.parametrize("value", ["", "1 2 3 4", "-1", "1.5", "512", "²", "1e2", "9" * 5_000])
def test_bad_numbers(value: str) -> None:
    with pytest.raises(ValueError, match=r"^the sequence "):
        request_limits.numbers("the sequence", value, 512, 3)


def test_flags_are_true_or_false() -> None:
    assert request_limits.flag("in_place", True)
    with pytest.raises(ValueError, match="in_place must be true or false, got 'no'"):
        request_limits.flag("in_place", "no")
