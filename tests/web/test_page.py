"""The page in a real browser, on a desk and on a phone."""

from __future__ import annotations

import io
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from PIL import Image

from browsers import DESKTOP, PHONE, Visit
from indel.repairing.repairer import Repairer
from indel.web.limits import LIMITS
from indel.web.models import Models
from indel.web.watch_tab import WatchTab
from page_server import Server

Open = Callable[..., Visit]
SIZES = pytest.mark.parametrize("size", [DESKTOP, PHONE], ids=["desktop", "phone"])
HOSTILE = (
    "<script>window.hacked=1</script><img src=x onerror=window.hacked=1> ${window.hacked=1} "
    "{{hacked}} </textarea> \u202egnp.exe \u2066 \0 🧑‍🚀 שלום"
)


def set_number(page: Any, label: str, value: int) -> None:
    """Type into the number next to a slider, or into a number of its own."""
    box = page.get_by_label(label).locator("visible=true").first
    box.fill(str(value))
    box.press("Tab")


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


def fits(page: Any) -> bool:
    """Whether nothing is wider than the screen."""
    return bool(page.evaluate("document.documentElement.scrollWidth <= window.innerWidth"))


@SIZES
def test_repairs_a_sentence(visit: Open, models: Models, size: dict[str, int]) -> None:
    seen = visit(size)
    page, text = seen.page, "Helo, wrld! It is 5 o'clock."
    page.locator("#repair-text textarea").fill(text)
    page.get_by_role("button", name="Settings").locator("visible=true").click()
    # One draw of an untrained model agrees with itself on a lot of nonsense.
    set_number(page, "number input for Draws", 1)
    set_number(page, "number input for Strength", 9)
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
    assert "100% likely" in why.inner_text()
    assert expected.corrections[0].after in why.inner_text()
    box = why.bounding_box()
    assert box["x"] >= 0
    assert box["x"] + box["width"] <= size["width"]
    assert fits(page)


@SIZES
def test_plays_a_trajectory(visit: Open, models: Models, size: dict[str, int]) -> None:
    seen = visit(size)
    page = seen.page
    seen.open_tab("Watch")
    seen.run()
    player = page.locator("#watch-player indel-player")
    assert count(player) == "1 / 13"
    assert player.locator(".line").count() == 13
    player.press("ArrowRight")
    player.press("ArrowRight")
    player.press("ArrowLeft")
    assert count(player) == "2 / 13"
    player.locator("input").fill("5")
    assert count(player) == "6 / 13"
    player.get_by_role("button", name="Play").click()
    page.wait_for_function("document.querySelector('indel-player output').textContent > '7'")
    player.press(" ")
    assert player.get_by_role("button", name="Play").is_visible()
    stopped = count(player)
    page.wait_for_timeout(600)
    assert count(player) == stopped
    player.press("End")
    result = WatchTab(models).watch()["result"]
    assert player.locator(".now bdi").inner_text() == result
    cells = player.locator(".stage .cell").all_inner_texts()
    assert "".join(cells).replace("·", " ") == result
    assert fits(page)


def test_a_letter_stays_in_its_place(visit: Open) -> None:
    seen = visit()
    seen.open_tab("Process")
    seen.run()
    player = seen.page.locator("#process-player indel-player")
    cells = player.locator(".stage .cell")
    before = cells.all_inner_texts()
    player.press("ArrowRight")
    after = cells.all_inner_texts()
    assert len(before) == len(after)
    kept = player.locator(".stage .cell.kept").evaluate_all(
        "cells => cells.map(cell => [...cell.parentElement.children].indexOf(cell))"
    )
    assert len(kept) > 10
    assert all(before[place] == after[place] for place in kept)


@SIZES
def test_all_tabs_fit_and_numbers_can_be_watched(visit: Open, size: dict[str, int]) -> None:
    seen = visit(size)
    seen.open_tab("Watch")
    seen.page.get_by_label("Numbers").check()
    seen.run()
    square = seen.page.locator("#watch-player .stage .square").first
    seen.page.locator("#watch-player indel-player").press("End")
    assert square.evaluate("cell => getComputedStyle(cell).backgroundColor").startswith("rgb")
    for tab, result in (("Process", "#process-pictures svg"), ("Likelihood", ".bars")):
        seen.open_tab(tab)
        seen.run()
        assert seen.page.locator(result).locator("visible=true").count() == 2
        assert fits(seen.page)


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
    assert seen.page.locator("#likelihood-answer").inner_text() == ""
    # And the next one runs.
    seen.page.locator("#likelihood-text textarea").fill("short")
    seen.run()

    seen = long_run(visit)
    start = at_rest(server)
    seen.start()
    seen.page.locator("progress[value]:visible").wait_for()
    seen.close()
    assert at_rest(server) - start < 0.6 * whole


@SIZES
def test_hostile_text_stays_text(visit: Open, size: dict[str, int]) -> None:
    seen = visit(size)
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
    assert fits(page)


def test_a_line_of_a_megabyte_gets_one_clear_sentence(visit: Open) -> None:
    seen = visit()
    seen.page.locator("#repair-text textarea").fill("x" * 1_000_000)
    seen.start()
    seen.page.get_by_role("alert").get_by_text("1,000,000 characters; at most 2,000").wait_for()


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
