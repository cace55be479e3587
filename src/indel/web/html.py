"""Text of others as HTML: escaped, with everything visible that could hide or reorder it."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable
from html import escape

from indel.text_repair.results import Correction, Repair
from indel.web.jobs import Progress

# Control, format, private and unassigned characters, and the separators that break lines unseen.
_HIDDEN = {"Cc", "Cf", "Co", "Cn", "Cs", "Zl", "Zp"}
# Joiners make emoji and scripts what they are.
_SHOWN = "\n\t\N{ZERO WIDTH JOINER}\N{ZERO WIDTH NON-JOINER}"


def shown(text: str) -> str:
    """Any text as inert HTML, isolated from the writing direction around it.

    >>> shown("<b>" + chr(0x202E))
    '<bdi>&lt;b&gt;<span class="hidden-character">U+202E</span></bdi>'
    """
    return f"<bdi>{''.join(map(_character, text))}</bdi>" if text else ""


def message(text: str) -> str:
    """One sentence that a screen reader announces at once."""
    return f'<p class="message" role="alert">{shown(text)}</p>'


def sheets(papers: Iterable[str]) -> str:
    """Sections of class "paper", side by side where there is room."""
    return f'<div class="sheets">{"".join(papers)}</div>'


def look(text: str) -> str:
    """One sentence, already HTML, on what there is to see."""
    return f'<p class="look">{text}</p>'


def note(text: str) -> str:
    """One sentence about what is shown."""
    return f'<p class="note" role="status">{shown(text)}</p>'


def bar(progress: Progress) -> str:
    """How far a run is."""
    done, total = progress
    # Without a value the bar moves to and fro: something is going on.
    value = f' value="{done}" max="{total}"' if done else ""
    words = f"{done} of {total}" if done else "working"
    return f'<p class="note" role="status"><progress{value}></progress> {words}</p>'


def repaired(repair: Repair) -> str:
    """A mended text: corrections with what they replace, doubts where nothing was changed.

    What the draws say about a place is shown to whoever points at it or reaches it by keyboard.
    """
    places = [(correction, True) for correction in repair.corrections]
    places += [(doubt, False) for doubt in repair.doubts]
    pieces, end = [], 0
    for place, made in sorted(places, key=lambda pair: pair[0].start):
        pieces += [shown(repair.original[end : place.start]), _place(place, made=made)]
        end = place.end
    pieces.append(shown(repair.original[end:]))
    return f'<div class="mended">{"".join(pieces)}</div>'


def percent(probability: float) -> str:
    """A probability for people: what happens at all is never 0 %.

    >>> percent(0.875), percent(0.001)
    ('88%', '<1%')
    """
    return "<1%" if 0 < probability < 0.005 else f"{probability:.0%}"


def items(rows: Iterable[tuple[str, str]]) -> str:
    """Pairs of cells, already HTML, as a table."""
    lines = (f'<tr><th scope="row">{name}</th><td>{value}</td></tr>' for name, value in rows)
    return f'<table class="items">{"".join(lines)}</table>'


def _place(place: Correction, *, made: bool) -> str:
    choices = "".join(
        f"<li>{shown(choice.text)} <b>{escape(percent(choice.probability))}</b></li>"
        for choice in place.choices[:5]
    )
    if made:
        kind, head = "correction", f"{percent(place.probability)} likely"
        body = f"<del>{shown(place.before)}</del><ins>{shown(place.after)}</ins>"
    else:
        kind, head = "doubt", "left as it was: nothing is likely enough"
        body = f"<span>{shown(place.before)}</span>"
    return (
        f'<span class="place {kind}" tabindex="0">{body}'
        f'<span class="why" role="tooltip">{head}<ol>{choices}</ol></span></span>'
    )


def _character(character: str) -> str:
    if character in _SHOWN or unicodedata.category(character) not in _HIDDEN:
        return escape(character)
    return f'<span class="hidden-character">U+{ord(character):04X}</span>'
