from __future__ import annotations

from html.parser import HTMLParser

from hypothesis import given
from hypothesis import strategies as st

from indel.text_repair.results import Choice, Correction, Repair
from indel.web import html
from indel.web.jobs import Progress


class Reader(HTMLParser):
    """The elements and the text of a piece of HTML."""

    def __init__(self, source: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.text = ""
        self.feed(source)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        assert not any(name.startswith("on") for name, _ in attrs)

    def handle_data(self, data: str) -> None:
        self.text += data


def hostile(text: str) -> Repair:
    choices = (Choice(text, 0.75), Choice("other", 0.25))
    place = Correction(0, len(text), text, choices)
    return Repair(text, text, (place,), (), (Choice(text, 1.0),), (text,))


@given(st.text())
def test_any_text_is_inert(text: str) -> None:
    assert Reader(html.shown(text)).tags <= {"bdi", "span"}
    assert Reader(html.message(text)).tags <= {"bdi", "span", "p"}
    assert Reader(html.repaired(hostile(text))).tags <= {
        "bdi",
        "span",
        "div",
        "del",
        "ins",
        "ol",
        "li",
        "b",
    }


@given(st.text(st.characters(codec="ascii", exclude_categories=["Cc"])))
def test_plain_text_stays_what_it_is(text: str) -> None:
    assert Reader(html.shown(text)).text == text


def test_marks_that_reorder_or_hide_are_shown_by_name() -> None:
    shown = html.shown("a\0b\u202ec\u2066d\u200be")
    for character in "\0\u202e\u2066\u200b":
        assert character not in shown
    for name in ("U+0000", "U+202E", "U+2066", "U+200B"):
        assert name in shown


def test_lines_and_joined_emoji_are_left_alone() -> None:
    assert html.shown("a\nb 🧑‍🚀") == "<bdi>a\nb 🧑‍🚀</bdi>"


def test_corrections_and_doubts_stand_where_they_belong() -> None:
    made = Correction(5, 9, "wrld", (Choice("world", 0.75), Choice("wild", 0.25)))
    doubt = Correction(0, 4, "helo", (Choice("hello", 0.4), Choice("help", 0.35)))
    repair = Repair("helo wrld!", "helo world!", (made,), (doubt,), (), ())
    shown = html.repaired(repair)
    assert shown.index("place doubt") < shown.index("place correction")
    text = Reader(shown).text
    assert "75% likely" in text
    assert "help 35%" in text
    assert text.endswith("!")


def test_bar_tells_how_far() -> None:
    assert 'value="3" max="7"' in html.bar(Progress(3, 7))
    assert "3 of 7" in html.bar(Progress(3, 7))
    assert "value" not in html.bar(Progress(0, 7))
