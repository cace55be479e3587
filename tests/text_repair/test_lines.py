"""Windows, seams and votes of whole lines."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from indel.text_repair.lines import Mender
from indel.text_repair.windows import cut_windows
from support.denoisers import letter_denoiser


@pytest.fixture(scope="module")
def mender() -> Mender:
    """An untrained model with small windows: it changes much, and lines have many seams."""
    denoiser = letter_denoiser(seed=3)
    return Mender(denoiser, strength=2, draws=3, width=40, overlap=16, batch_size=8)


@given(st.text("ab ", max_size=200), st.integers(5, 50), st.data())
def test_windows_cover_the_line(line: str, width: int, data: st.DataObject) -> None:
    overlap = data.draw(st.integers(0, width - 1))
    windows = cut_windows(line, width, overlap)
    assert {len(window.text) for window in windows} == {width}
    assert windows[0].start == 0
    assert windows[-1].end == len(line)
    for window in windows:
        length = window.end - window.start
        assert window.text[window.offset :][:length] == line[window.start : window.end]
    for left, right in pairwise(windows):
        assert left.end - right.start >= overlap


def test_corrections_lie_apart_and_in_the_line(mender: Mender) -> None:
    line = " ".join(f"{word} of the" for word in ("one", "two", "three", "four") * 8)
    (repair,) = mender([line])
    assert repair.letters == line
    assert len(repair.corrections) > 4
    for left, right in pairwise(repair.corrections):
        assert left.end < right.start
    for each in repair.corrections:
        assert 0 <= each.start < each.end <= len(line)
        # Whole words.
        assert each.start == 0 or line[each.start - 1] == " "
        assert each.end == len(line) or line[each.end] == " "
        assert len(each.votes) == 3
        assert sum(choice.probability for choice in each.choices) == pytest.approx(1.0)


def test_lines_do_not_matter_to_each_other(mender: Mender) -> None:
    lines = ["the cat sat", "", "a", "another line of words that is a bit longer than a window is"]
    together = mender(lines)
    assert [repair.letters for repair in together] == lines
    assert together == [mender([line])[0] for line in lines]
    assert together == mender(lines)
    assert together[1].corrections == ()


def test_a_word_without_an_end(mender: Mender) -> None:
    """No space to cut at: nothing is lost, and what would cross a seam is left alone."""
    (repair,) = mender(["x" * 200])
    assert repair.letters == "x" * 200
    assert repair.corrections == ()


def test_progress_counts_windows_and_may_stop_the_work(mender: Mender) -> None:
    seen: list[tuple[int, int]] = []
    mender(["one"] * 5, progress=lambda done, total: seen.append((done, total)))
    assert seen[-1] == (5, 5)
    assert sorted(seen) == seen

    def stop(done: int, total: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        mender(["one"] * 5, progress=stop)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"strength": 0}, "strength must lie in 1…31, got 0"),
        ({"strength": 33}, "strength must lie in 1…31, got 33"),
        ({"draws": 0}, "draws must be at least 1 where no words are known, got 0"),
        ({"width": 128}, "width ≤ 127"),
    ],
)
def test_bad_settings(mender: Mender, settings: dict[str, int], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Mender(mender.denoiser, **{"width": 40, "overlap": 16, **settings})
