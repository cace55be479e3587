"""The documentation site as a reader sees it: served from its folder, opened in Chromium."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from support.browsers import PHONE

DESKTOP = {"width": 1440, "height": 900}
VIEWS = {
    "desktop-light": (DESKTOP, "light"),
    "desktop-dark": (DESKTOP, "dark"),
    "phone-light": (PHONE, "light"),
    "phone-dark": (PHONE, "dark"),
}
PAGES = (
    "index",
    "quickstart",
    "tutorials/own-sequences",
    "tutorials/own-process",
    "method",
    "reference/python",
    "reference/commands",
    "reference/settings",
    "gallery",
    "comparison",
    "molecules",
)
"""One of each kind, and those with wide tables, figures and players."""

# Boxes that scroll on their own may hold what is wider than they are.
_WIDER = """() => {
  const wide = document.documentElement.clientWidth;
  const scrolls = (each) => {
    for (let box = each.parentElement; !box.matches(".md-content"); box = box.parentElement)
      if (["auto", "scroll", "hidden"].includes(getComputedStyle(box).overflowX)) return true;
    return false;
  };
  return [...document.querySelectorAll(".md-content *")]
    .filter((each) => each.getBoundingClientRect().right > wide + 1 && !scrolls(each))
    .map((each) => `${each.tagName}: ${each.textContent.trim().slice(0, 40)}`);
}"""
_BROKEN = """async () => {
  const images = [...document.querySelectorAll("img")];
  images.forEach((each) => { each.loading = "eager"; });
  await Promise.all(images.map((each) => each.decode().catch(() => null)));
  return images.filter((each) => !each.naturalWidth).map((each) => each.src);
}"""


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: Any) -> None:
        """Nothing."""


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """The address of a folder's files, until the block is left."""
    handler = partial(_Quiet, directory=str(folder))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


def faults(page: Any) -> list[str]:
    """What is wider than the window, and pictures that do not load."""
    wider = [f"wider than the window: {each}" for each in page.evaluate(_WIDER)]
    return wider + [f"does not load: {each}" for each in page.evaluate(_BROKEN)]
