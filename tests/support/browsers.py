"""A real browser for tests and screenshots: Debian's Chromium, driven by Playwright."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

LOW_CONTRASTS = Path(__file__).parent / "low_contrasts.js"
CHROMIUM = Path("/usr/bin/chromium")
MISSING = f"there is no {CHROMIUM}: apt-get install chromium"
DESKTOP = {"width": 1280, "height": 800}
PHONE = {"width": 390, "height": 844}
PATIENCE = 90_000
"""Milliseconds."""
_FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


@contextmanager
def browser() -> Iterator[Any]:
    """Chromium, until the block is left."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=str(CHROMIUM), args=list(_FLAGS))
        try:
            yield chromium
        finally:
            chromium.close()


class OpenPage:
    """One page in the browser, with every complaint and every request that it makes."""

    def __init__(
        self,
        chromium: Any,
        address: str,
        size: dict[str, int],
        *,
        theme: str = "light",
        motion: bool = False,
    ) -> None:
        # A phone has a finger, and pixels finer than those of the layout.
        context = chromium.new_context(
            viewport=size,
            has_touch=size == PHONE,
            is_mobile=size == PHONE,
            device_scale_factor=2 if size == PHONE else 1,
            reduced_motion="no-preference" if motion else "reduce",
            color_scheme=theme,
        )
        self.page = context.new_page()
        # Of a machine that does other work too; nothing waits so long elsewhere.
        self.page.set_default_timeout(PATIENCE)
        self.errors: list[str] = []
        self.hosts: set[str] = set()
        self.page.on("console", self._heard)
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))
        self.page.on("request", lambda request: self.hosts.add(urlsplit(request.url).netloc))
        self.page.goto(address)

    def _heard(self, message: Any) -> None:
        if message.type in ("error", "warning"):
            self.errors.append(message.text)

    def low_contrasts(self) -> list[str]:
        """The visible texts whose contrast to what lies behind them is below 4.5 (WCAG 2)."""
        return list(self.page.evaluate(LOW_CONTRASTS.read_text(encoding="utf-8")))

    def close(self) -> None:
        """Leave."""
        self.page.context.close()


class Visit(OpenPage):
    """The page of `indel serve` in the browser."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.page.get_by_role("tab", name="Repair").wait_for()

    def open_tab(self, name: str) -> None:
        """Choose a tab."""
        self.page.get_by_role("tab", name=name).click()

    def run(self) -> None:
        """Press Run in the tab that is open and wait until it is done."""
        # The word of the run before may still be there when this one starts.
        self.page.evaluate(
            "document.querySelectorAll('.status p').forEach(word => { word.dataset.old = '' })"
        )
        self.start()
        self.page.locator(".status:visible p:not([data-old])").get_by_text("Done.").wait_for()

    def start(self) -> None:
        """Press Run in the tab that is open."""
        self.page.get_by_role("button", name="Run", exact=True).locator("visible=true").click()

    def status(self) -> str:
        """What the line under the buttons says."""
        return str(self.page.locator(".status:visible").first.inner_text()).strip()
