"""The site in a browser, at the size of a desk and of a phone: it fits, is legible, and plays."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support import browsers
from support.browsers import PHONE, OpenPage
from support.site_views import DESKTOP, PAGES, VIEWS, faults, served


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    if not browsers.CHROMIUM.exists():
        pytest.skip(browsers.MISSING)
    with browsers.browser() as found:
        yield found


@pytest.fixture(scope="module")
def address(site: Path) -> Iterator[str]:
    with served(site) as found:
        yield found


@pytest.mark.slow
@pytest.mark.parametrize("view", VIEWS)
def test_pages_fit_and_can_be_read(chromium: Any, address: str, view: str) -> None:
    size, theme = VIEWS[view]
    seen = OpenPage(chromium, address, size, theme=theme)
    for name in PAGES:
        seen.page.goto(f"{address}/{name}.html")
        assert not faults(seen.page), name
        assert not seen.low_contrasts(), name
    assert not seen.errors
    assert seen.hosts == {address.removeprefix("http://")}
    seen.close()


@pytest.mark.slow
def test_what_does_not_fit_is_found(chromium: Any, address: str) -> None:
    seen = OpenPage(chromium, f"{address}/quickstart.html", PHONE)
    seen.page.evaluate(
        "document.querySelector('.md-content p').innerHTML = "
        '\'<b style="display: block; width: 900px">wide</b><img src="none.png">\''
    )
    assert len(faults(seen.page)) == 2
    seen.close()


@pytest.mark.slow
@pytest.mark.parametrize("size", [DESKTOP, PHONE], ids=["desktop", "phone"])
def test_trajectories_play(chromium: Any, address: str, size: dict[str, int]) -> None:
    seen = OpenPage(chromium, f"{address}/gallery.html", size)
    players = seen.page.locator("indel-player")
    assert players.count() >= 6
    for player in players.all():
        place = player.locator("output")
        last = place.inner_text()
        number, _, total = last.partition(" / ")
        assert number == total
        player.get_by_role("button", name="Play").click()
        # From the start on; the next one need not wait for the end.
        player.locator(f"output:text-is('2 / {total}')").wait_for()
        player.locator(f"output:text-is('3 / {total}')").wait_for()
    # The last one does not stop before its end.
    player.locator(f"output:text-is('{last}')").wait_for()
    assert not seen.errors
    seen.close()


@pytest.mark.slow
def test_the_menu_of_a_phone_leads_to_every_part(chromium: Any, address: str) -> None:
    seen = OpenPage(chromium, f"{address}/index.html", PHONE)
    seen.page.locator("label.md-header__button[for=__drawer]").click()
    for part in ("Quick start", "Tutorials", "How it works", "Reference", "Gallery"):
        seen.page.locator(".md-nav--primary").get_by_text(part, exact=True).first.wait_for()
    seen.page.locator(".md-nav--primary").get_by_role("link", name="Gallery").click()
    seen.page.get_by_role("heading", name="Gallery").wait_for()
    seen.close()
