"""Small charts as SVG in the colours of the page, light or dark: bars and curves over t."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from html import escape

# In pixels of the viewBox; on a phone they are about those of the screen.
WIDTH, HEIGHT = 360, 200
LEFT, RIGHT, TOP, BOTTOM = 46, 8, 22, 34
# Told apart by dashes too.
_CURVES = (
    ("var(--indel-ink)", ""),
    ("var(--indel-replaced)", "6 3"),
    ("var(--indel-deleted)", "2 2"),
    ("var(--indel-inserted)", "9 3 2 3"),
)


def bar_chart(values: Sequence[float], last: float, *, unit: str) -> str:
    """A bar for each step t = 1 … T and one for the length of x_T; what is not finite has none."""
    every = [value if math.isfinite(value) else 0.0 for value in (*values, last)]
    low, high, step = _scale(min(0.0, *every), max(0.0, *every))
    room = (WIDTH - LEFT - RIGHT) / (len(every) + 0.5)

    def y(value: float) -> float:
        return TOP + (high - value) / (high - low) * (HEIGHT - TOP - BOTTOM)

    bars = []
    for number, value in enumerate(every):
        is_length = number == len(values)
        name = "length" if is_length else f"t = {number + 1}"
        x = LEFT + room * (number + 0.5 * is_length)
        bars.append(
            f'<rect x="{x + 0.08 * room:.1f}" y="{y(max(value, 0.0)):.1f}" '
            f'width="{0.84 * room:.1f}" height="{abs(y(0.0) - y(value)):.1f}" '
            f'fill="var(--indel-{"replaced" if is_length else "inserted"})">'
            f"<title>{name}: {value:.3f} {escape(unit)}</title></rect>"
        )
    count = len(values)
    marks = {
        LEFT + room * (t - 0.5): str(t)
        for t in range(1, count + 1)
        if t in (1, count) or (t % max(1, _nice(count / 6)) == 0 and t < 0.93 * count)
    }
    marks[WIDTH - RIGHT - room / 2] = "ℓ"
    body = _frame(low, high, step, y, marks, unit, "step t; ℓ is the length")
    numbers = f"from {min(every):.3f} to {max(every):.3f} {unit}"
    return _svg(body + "".join(bars), "bars", f"a bar for each step, {numbers}")


def line_chart(times: Sequence[int], curves: Mapping[str, Sequence[float]], *, unit: str) -> str:
    """Curves over t of values from 0 to 1, with their names below."""

    def x(t: float) -> float:
        return LEFT + (t - times[0]) / max(times[-1] - times[0], 1) * (WIDTH - LEFT - RIGHT - 6)

    def y(value: float) -> float:
        return TOP + (1.0 - value) * (HEIGHT - TOP - BOTTOM)

    stride = max(1, _nice((times[-1] - times[0]) / 6))
    body = _frame(
        0.0, 1.0, 0.25, y, {x(t): str(t) for t in times if t % stride == 0}, unit, "step t"
    )
    legend: list[str] = []
    for (name, values), (colour, dashes) in zip(curves.items(), _CURVES, strict=False):
        points = " ".join(f"{x(t):.1f},{y(v):.1f}" for t, v in zip(times, values, strict=True))
        body += (
            f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="2" '
            f'stroke-dasharray="{dashes}"/>'
        )
        top = HEIGHT + 4 + 16 * len(legend)
        legend.append(
            f'<path d="M{LEFT} {top}h30" stroke="{colour}" stroke-width="2" '
            f'stroke-dasharray="{dashes}"/>'
            f'<text x="{LEFT + 38}" y="{top + 4}">{escape(name)}</text>'
        )
    return _svg(body + "".join(legend), "curves", ", ".join(curves), HEIGHT + 16 * len(legend))


def _frame(
    low: float,
    high: float,
    step: float,
    y: object,
    marks: Mapping[float, str],
    unit: str,
    below: str,
) -> str:
    """Axes with numbers, a thin rule at each of them, and what they count."""
    assert callable(y)
    parts = [f'<text x="4" y="12">{escape(unit)}</text>']
    for number in range(round((high - low) / step) + 1):
        value = low + number * step
        parts.append(
            f'<path class="rule" d="M{LEFT} {y(value):.1f}H{WIDTH - RIGHT}"/>'
            f'<text x="{LEFT - 5}" y="{y(value) + 4:.1f}" text-anchor="end">{value:.4g}</text>'
        )
    for place, name in marks.items():
        parts.append(
            f'<text x="{place:.1f}" y="{HEIGHT - BOTTOM + 14}" text-anchor="middle">{name}</text>'
        )
    parts.append(f'<path class="axis" d="M{LEFT} {y(max(low, 0.0)):.1f}H{WIDTH - RIGHT}"/>')
    parts.append(f'<text x="{WIDTH - RIGHT}" y="{HEIGHT - 5}" text-anchor="end">{below}</text>')
    return "".join(parts)


def _svg(body: str, kind: str, label: str, height: int = HEIGHT) -> str:
    return (
        f'<svg class="chart {kind}" xmlns="http://www.w3.org/2000/svg" '
        f'viewBox="0 0 {WIDTH} {height}" role="img" aria-label="{escape(label)}">{body}</svg>'
    )


def _nice(value: float) -> int:
    """The smallest of 1, 2, 5, 10, 20, … that is at least the value."""
    size = 1
    while True:
        for factor in (1, 2, 5):
            if factor * size >= value:
                return factor * size
        size *= 10


def _scale(low: float, high: float) -> tuple[float, float, float]:
    """Round ends of an axis and the distance of its numbers: about four of them."""
    span = max(high - low, 1e-9)
    # Noise just below 0 needs no axis of its own.
    low = low if low < -0.03 * span else 0.0
    power = 10.0 ** math.floor(math.log10(span / 4))
    step = next(factor * power for factor in (1, 2, 2.5, 5, 10) if factor * power >= span / 4)
    return math.floor(low / step) * step, max(math.ceil(high / step), 1) * step, step
