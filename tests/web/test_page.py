"""The page in a real browser, on a desk and on a phone."""

from __future__ import annotations

import io
import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from PIL import Image

from indel.text_repair.repairer import Repairer
from indel.web.models import Models
from indel.web.request_limits import LIMITS
from indel.web.watch_tab import WatchTab
from support.browsers import DESKTOP, PHONE, Visit
from support.page_server import Server

Open = Callable[..., Visit]
SIZES = pytest.mark.parametrize("size", [DESKTOP, PHONE], ids=["desktop", "phone"])
PLAYER = "document.querySelector('#watch-player indel-player').shadowRoot"
THEMES = pytest.mark.parametrize("theme", ["light", "dark"])
# All four; two of them, with both sizes and both themes, before each commit.
LOOKS = pytest.mark.parametrize(
    ("size", "theme"),
    [
        pytest.param(DESKTOP, "light", id="desktop-light"),
        pytest.param(PHONE, "dark", id="phone-dark"),
        pytest.param(DESKTOP, "dark", id="desktop-dark", marks=pytest.mark.slow),
        pytest.param(PHONE, "light", id="phone-light", marks=pytest.mark.slow),
    ],
)
TABS = ("Repair", "Watch", "Fill", "Process", "Likelihood")
HOSTILE = (
    "<script>window.hacked=1</script><img src=x onerror=window.hacked=1> ${window.hacked=1} "
    "{{hacked}} </textarea> \u202egnp.exe \u2066 \0 🧑‍🚀 שלום"
)


def set_number(page: Any, label: str, value: int) -> None:
    """Type into the number next to a slider, or into a number of its own."""
    box = page.get_by_label(label).locator("visible=true").first
    # Settings that have just been opened are drawn once more, with the value from before.
    for _ in range(10):
        box.fill(str(value))
        box.press("Tab")
        page.wait_for_timeout(400)
        if box.input_value() == str(value):
            return
    raise AssertionError(f"{label} does not keep the value {value}")


def give_seed(seen: Visit, seed: int) -> None:
    seen.page.get_by_role("button", name="Settings").locator("visible=true").click()
    set_number(seen.page, "Seed", seed)


def stage_text(player: Any) -> str:
    """What a reader of the stage sees, line by line; no gap between tokens that are neighbours."""
    found = player.evaluate(
        """player => [...player.shadowRoot.querySelectorAll('.stage .cell')].map(cell => {
            const box = cell.getBoundingClientRect();
            return [Math.round(box.top), box.left, box.right, cell.textContent];
        })"""
    )
    for before, after in pairwise(sorted(found)):
        assert before[0] != after[0] or abs(before[2] - after[1]) < 5, (before, after)
    return "".join(cell[3] for cell in sorted(found))


def count(player: Any) -> str:
    return str(player.locator("output").inner_text())


def at_rest(server: Server) -> float:
    """The seconds that the server has computed for, once it does nothing but wait.

    Open pages cost it a few hundredths of a core even then.
    """
    last, now = -1.0, server.cpu_seconds()
    while now - last > 0.25:
        time.sleep(1)
        last, now = now, server.cpu_seconds()
    return now


def complaints(seen: Visit) -> list[str]:
    """Texts that can hardly be read, and whether something is wider than the screen."""
    wide = seen.page.evaluate("document.documentElement.scrollWidth > window.innerWidth")
    return [*seen.low_contrasts(), *(["wider than the screen"] if wide else [])]


@LOOKS
def test_repairs_a_sentence(visit: Open, models: Models, size: dict[str, int], theme: str) -> None:
    seen = visit(size, theme=theme)
    page, text = seen.page, "Helo, wrld! It is 5 o'clock."
    page.locator("#repair-text textarea").fill(text)
    page.get_by_role("button", name="Settings").locator("visible=true").click()
    # One draw of an untrained model agrees with itself on a lot of nonsense.
    set_number(page, "number input for Draws", 1)
    set_number(page, "number input for Strength", 9)
    set_number(page, "Seed", 0)
    seen.run()
    expected, other = (
        Repairer(model, strength=9, draws=1)([text])[0] for model in (models.text8, models.in_place)
    )
    assert expected.corrections
    assert page.locator("#repair-plain textarea").input_value() == expected.text
    sheets = page.locator("#repair-answer section")
    for sheet, repair in zip((sheets.nth(0), sheets.nth(1)), (expected, other), strict=True):
        assert sheet.locator(".correction").count() == len(repair.corrections)
        assert sheet.locator(".doubt").count() == len(repair.doubts)
    first = page.locator(".correction").first
    assert not first.locator(".why").is_visible()
    first.focus()
    why = first.locator(".why")
    assert f"{expected.corrections[0].probability:.0%} likely" in why.inner_text()
    assert expected.corrections[0].after in why.inner_text()
    box = why.bounding_box()
    assert box["x"] >= 0
    assert box["x"] + box["width"] <= size["width"]
    assert complaints(seen) == []


@LOOKS
def test_plays_a_trajectory(visit: Open, models: Models, size: dict[str, int], theme: str) -> None:
    seen = visit(size, theme=theme)
    page = seen.page
    seen.open_tab("Watch")
    give_seed(seen, 0)
    seen.run()
    player = page.locator("#watch-player indel-player")
    player.press("Home")
    assert count(player) == "1 / 13"
    assert player.locator(".line").count() == 13
    player.press("ArrowRight")
    player.press("ArrowRight")
    player.press("ArrowLeft")
    assert count(player) == "2 / 13"
    player.locator("input").fill("5")
    assert count(player) == "6 / 13"
    player.get_by_role("button", name="Play").click()
    page.wait_for_function(f"{PLAYER}.querySelector('output').textContent > '7'")
    player.press(" ")
    assert player.get_by_role("button", name="Play").is_visible()
    stopped = count(player)
    page.wait_for_timeout(600)
    assert count(player) == stopped
    player.press("End")
    result = WatchTab(models).watch()["result"]
    assert player.locator(".now bdi").inner_text() == result
    assert stage_text(player).replace("·", " ") == result
    assert complaints(seen) == []


def test_a_letter_that_stays_is_the_same_one_and_glides(visit: Open) -> None:
    seen = visit()
    seen.open_tab("Process")
    player = seen.page.locator("#process-player indel-player")
    player.press("Home")
    player.locator(".stage .cell").evaluate_all(
        "cells => cells.forEach(cell => { cell.mark = cell.textContent })"
    )
    player.press("ArrowRight")
    kept = player.locator(".stage .cell.kept").evaluate_all(
        "cells => cells.map(cell => [cell.mark, cell.textContent])"
    )
    assert len(kept) > 10
    assert all(mark == text for mark, text in kept)


@pytest.mark.parametrize("tab", TABS)
def test_each_tab_shows_every_run(visit: Open, tab: str) -> None:
    """Gradio changes the element of the run before, it does not make a new one."""
    seen = visit()
    page = seen.page
    seen.open_tab(tab)
    answers = {
        "Repair": "#repair-answer .mended",
        "Watch": "#watch-player .stage",
        "Fill": "#fill-answer .mended",
        "Process": "#process-player .stage",
        "Likelihood": "#likelihood-answer .total",
    }
    box = page.locator("textarea:visible, input[type=text]:visible").first
    shown = set()
    for text in ("an apple", "two pears and a plum", "nothing but nuts"):
        box.fill(text)
        seen.run()
        answer = page.locator(answers[tab]).first
        assert answer.is_visible()
        shown.add(answer.inner_text())
    assert len(shown) == 3
    if tab == "Watch":
        box.fill("")
        page.get_by_label("Numbers").check()
        seen.run()
        player = page.locator("#watch-player indel-player")
        assert player.locator(".line").count() == 11
        result = player.locator(".now bdi").inner_text().split()
        assert len(result) > 1
        # Cells show the numbers themselves.
        assert stage_text(player) == "".join(result)
        assert "a number will come here" in player.locator(".legend").inner_text()


@SIZES
@THEMES
def test_all_text_can_be_read(visit: Open, size: dict[str, int], theme: str) -> None:
    seen = visit(size, theme=theme)
    for tab in TABS:
        seen.open_tab(tab)
        seen.page.get_by_role("button", name="Settings").locator("visible=true").click()
        seen.page.wait_for_timeout(400)
        if tab == "Repair":
            seen.page.locator(".place").first.focus()
        assert complaints(seen) == [], tab


def test_low_contrast_is_found(visit: Open) -> None:
    seen = visit()
    seen.page.locator(".paper h3").first.evaluate(
        "title => title.style.setProperty('color', '#999999', 'important')"
    )
    assert any("Insert and delete" in each for each in seen.low_contrasts())


@LOOKS
def test_every_tab_has_a_result_before_the_first_run(
    visit: Open, size: dict[str, int], theme: str
) -> None:
    seen = visit(size, theme=theme)
    for tab, result in (
        ("Repair", "#repair-answer .mended"),
        ("Watch", "#watch-player .stage .cell"),
        ("Fill", "#fill-answer .mended ins"),
        ("Process", "#process-pictures svg"),
        ("Likelihood", "#likelihood-answer .bars"),
    ):
        seen.open_tab(tab)
        assert seen.page.locator(result).first.is_visible()
        assert not seen.page.get_by_role("button", name="Cancel").locator("visible=true").count()


def test_an_example_fills_in_and_runs(visit: Open) -> None:
    seen = visit()
    seen.open_tab("Watch")
    seen.page.get_by_role("button", name="a badly typed sentence").click()
    seen.page.locator(".status:visible").get_by_text("Done.").wait_for()
    player = seen.page.locator("#watch-player indel-player")
    player.press("Home")
    assert stage_text(player).replace("·", " ").startswith("thisn sentsnetne")
    seen.page.get_by_role("button", name="numbers out of nothing").click()
    seen.page.wait_for_function(f"{PLAYER}.textContent.includes('a number will come here')")
    assert seen.page.get_by_label("Numbers").is_checked()


def test_runs_differ_unless_a_seed_is_given(visit: Open) -> None:
    seen = visit()
    seen.open_tab("Watch")
    result = seen.page.locator("#watch-player .now bdi")

    def drawn() -> str:
        seen.run()
        return str(result.inner_text())

    assert drawn() != drawn()
    give_seed(seen, 7)
    first = drawn()
    assert seen.status() == "Done. The seed was 7."
    assert first == drawn()


def test_watch_plays_by_itself_and_ends_in_the_text(visit: Open) -> None:
    seen = visit(motion=True)
    seen.open_tab("Watch")
    seen.page.wait_for_function(f"{PLAYER}.querySelector('output').textContent === '13 / 13'")
    seen.page.wait_for_timeout(600)
    player = seen.page.locator("#watch-player indel-player")
    text = player.locator(".now bdi").inner_text()
    assert stage_text(player).replace("·", " ") == text
    assert player.get_by_role("button", name="Play").is_visible()


def test_drawings_are_whole_on_a_phone(visit: Open) -> None:
    seen = visit(PHONE)
    seen.open_tab("Process")
    # The arrows scroll as a whole; nothing of them is cut off.
    arrows = seen.page.locator("#process-pictures .scrolled")
    wide = arrows.evaluate(
        "each => [each.scrollWidth, each.querySelector('svg').width.baseVal.value]"
    )
    assert wide[0] >= wide[1] > PHONE["width"]
    for chart in seen.page.locator("#process-pictures .chart").all():
        box = chart.bounding_box()
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= PHONE["width"]
    assert seen.page.locator("#process-pictures .chart").count() == 2


@LOOKS
def test_all_tabs_fit_and_numbers_can_be_watched(
    visit: Open, size: dict[str, int], theme: str
) -> None:
    seen = visit(size, theme=theme)
    seen.open_tab("Watch")
    seen.page.get_by_label("Numbers").check()
    give_seed(seen, 0)
    seen.run()
    square = seen.page.locator("#watch-player .stage .square").first
    seen.page.locator("#watch-player indel-player").press("End")
    assert square.evaluate("cell => getComputedStyle(cell).backgroundColor").startswith("rgb")
    # New and changed numbers are marked as in the legend; their color is that of the number.
    for fate, style in (("inserted", "solid"), ("replaced", "dotted")):
        marks = seen.page.locator(f"#watch-player .line .square.{fate}").evaluate_all(
            "cells => cells.map(cell => getComputedStyle(cell)).map("
            "style => style.textDecorationLine + ' ' + style.textDecorationStyle)"
        )
        assert set(marks) == {f"underline {style}"}
    assert complaints(seen) == []
    for tab, result in (("Process", "#process-pictures .chart"), ("Likelihood", ".bars")):
        seen.open_tab(tab)
        seen.run()
        assert seen.page.locator(result).locator("visible=true").count() == 2
        assert complaints(seen) == []


def test_downloads(visit: Open, chromium: Any, files_folder: Path, tmp_path: Path) -> None:
    seen = visit()
    seen.open_tab("Watch")
    seen.run()
    paths = {}
    for kind in ("GIF", "HTML", "SVG"):
        with seen.page.expect_download() as waiting:
            seen.page.locator("#watch-files").get_by_text(kind, exact=True).click()
        paths[kind] = tmp_path / waiting.value.suggested_filename
        waiting.value.save_as(paths[kind])
    assert Image.open(io.BytesIO(paths["GIF"].read_bytes())).n_frames == 13
    assert ElementTree.parse(paths["SVG"]).getroot().tag.endswith("svg")
    alone = chromium.new_page()
    alone.goto(paths["HTML"].as_uri())
    player = alone.locator("indel-player")
    player.press("End")
    assert count(player) == "13 / 13"
    alone.close()
    # Nothing of it lies on the server.
    assert not [path for path in files_folder.rglob("*") if path.is_file()]


def long_run(visit: Open) -> Visit:
    """The page, about to do as much as it may be asked for."""
    seen = visit()
    seen.open_tab("Likelihood")
    seen.page.locator("#likelihood-text textarea").fill("a long text to score " * 28)
    seen.page.get_by_role("button", name="Settings").locator("visible=true").click()
    set_number(seen.page, "number input for Chains", LIMITS.chains)
    return seen


@pytest.mark.slow
def test_cancelling_or_leaving_ends_the_work(visit: Open, server: Server) -> None:
    seen = long_run(visit)
    at_rest(server)
    start = server.cpu_seconds()
    seen.run()
    whole = at_rest(server) - start

    seen = long_run(visit)
    start = at_rest(server)
    seen.start()
    seen.page.locator("progress[value]:visible").wait_for()
    seen.page.get_by_role("button", name="Cancel").locator("visible=true").click()
    seen.page.locator(".status:visible").get_by_text("Stopped.").wait_for()
    assert at_rest(server) - start < 0.6 * whole
    assert seen.status() == "Stopped."
    assert not seen.page.get_by_role("button", name="Cancel").locator("visible=true").count()
    # And the next one runs.
    seen.page.locator("#likelihood-text textarea").fill("short")
    seen.run()

    seen = long_run(visit)
    start = at_rest(server)
    seen.start()
    seen.page.locator("progress[value]:visible").wait_for()
    seen.close()
    assert at_rest(server) - start < 0.6 * whole


@LOOKS
def test_hostile_text_stays_text(visit: Open, size: dict[str, int], theme: str) -> None:
    seen = visit(size, theme=theme)
    page = seen.page
    page.locator("#repair-text textarea").fill(HOSTILE)
    seen.run()
    assert page.evaluate("window.hacked") is None
    shown = page.locator("#repair-answer .mended").first.inner_text()
    for part in ("<script>", "onerror=", "${", "{{hacked}}", "</textarea>", "U+202E", "🧑‍🚀"):
        assert part in shown
    assert "\u202e" not in shown
    for tab, box in (("Watch", "#watch-start"), ("Process", "#process-text")):
        seen.open_tab(tab)
        page.locator(f"{box} input, {box} textarea").fill(HOSTILE[:60])
        seen.run()
    seen.open_tab("Likelihood")
    page.locator("#likelihood-text textarea").fill(HOSTILE)
    seen.run()
    assert page.evaluate("window.hacked") is None
    assert complaints(seen) == []


@LOOKS
def test_a_line_of_a_megabyte_gets_one_clear_sentence(
    visit: Open, size: dict[str, int], theme: str
) -> None:
    seen = visit(size, theme=theme)
    seen.page.locator("#repair-text textarea").fill("x" * 1_000_000)
    seen.start()
    seen.page.get_by_role("alert").get_by_text("1,000,000 characters; at most 2,000").wait_for()
    seen.page.locator("#repair-text textarea").fill("")
    assert complaints(seen) == []


def test_by_keyboard_alone(visit: Open) -> None:
    seen = visit()
    page = seen.page
    page.locator("#repair-text textarea").focus()
    for _ in range(6):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.textContent").strip() == "Run":
            break
    page.keyboard.press("Enter")
    page.locator(".status:visible").get_by_text("Done.").wait_for()
