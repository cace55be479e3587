"""Votes of draws on words."""

from hypothesis import given
from hypothesis import strategies as st

from indel.text_repair.results import Choice
from indel.text_repair.votes import AlignedDraw, kept_spaces, vote


def changed(letters: str, edits: dict[int, str]) -> AlignedDraw:
    """A draw that writes something else for some of the letters, by hand."""
    pieces = [""] * (2 * len(letters) + 1)
    for place, letter in enumerate(letters):
        pieces[2 * place + 1] = edits.get(place, letter)
    return AlignedDraw(tuple(pieces))


@st.composite
def drawn(generator: st.DrawFn) -> tuple[str, str, list[int]]:
    """A text, and letters that come from it in order or are new."""
    letters = generator(st.text("ab ", max_size=8))
    kept = [place for place in range(len(letters)) if generator(st.booleans())]
    text, origins = "", []
    for origin in [*kept, None]:
        new = generator(st.text("xy ", max_size=2))
        text, origins = text + new, origins + [-1] * len(new)
        if origin is not None:
            text, origins = text + letters[origin], [*origins, origin]
    return letters, text, origins


@given(drawn())
def test_pieces_spell_the_draw(case: tuple[str, str, list[int]]) -> None:
    letters, text, origins = case
    draw = AlignedDraw.of(len(letters), text, origins)
    assert "".join(draw.pieces) == text
    for place in range(len(letters)):
        assert (draw.pieces[2 * place + 1] != "") == (place in origins)
    assert draw.written(0, len(letters)).split() == text.split()
    cut = len(letters) // 2
    parts = draw.part(0, cut).pieces[:-1] + draw.part(cut, len(letters)).pieces
    assert "".join(parts) == text


def test_words_are_counted_apart() -> None:
    letters = "teh cat sut"
    draws = [
        changed(letters, {1: "h", 2: "e", 9: "a"}),
        changed(letters, {1: "h", 2: "e", 9: "i"}),
        changed(letters, {9: "a"}),
        changed(letters, {}),
    ]
    first, second = vote(letters, draws, kept_spaces(letters, draws))
    assert (first.start, first.end, second.start, second.end) == (0, 3, 8, 11)
    assert first.choices == (Choice("teh", 0.5), Choice("the", 0.5))
    assert second.choices == (Choice("sat", 0.5), Choice("sit", 0.25), Choice("sut", 0.25))
    assert second.votes == ("sat", "sit", "sat", "sut")


def test_a_space_that_most_draws_drop_joins_words() -> None:
    letters = "be cause of"
    joined, kept = changed(letters, {2: ""}), changed(letters, {})
    assert kept_spaces(letters, [joined, joined, kept]) == [8]
    (correction,) = vote(letters, [joined, joined, kept], [8])
    assert (correction.start, correction.end) == (0, 8)
    assert [choice.text for choice in correction.choices] == ["because", "be cause"]
    # A minority that drops it cannot change how the words are cut.
    assert kept_spaces(letters, [joined, kept, kept]) == [2, 8]
    assert vote(letters, [joined, kept, kept], [2, 8]) == []


def test_a_space_that_is_put_in_splits_a_word() -> None:
    letters = "ofthe end"
    draw = AlignedDraw.of(9, "of the end", [0, 1, -1, 2, 3, 4, 5, 6, 7, 8])
    (correction,) = vote(letters, [draw], kept_spaces(letters, [draw]))
    assert (correction.start, correction.end, correction.choices[0].text) == (0, 5, "of the")


def test_words_are_not_dropped() -> None:
    letters = "the the"
    draw = changed(letters, {4: "", 5: "", 6: ""})
    assert vote(letters, [draw], kept_spaces(letters, [draw])) == []
