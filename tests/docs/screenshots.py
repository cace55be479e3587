"""Pictures of the documentation site, to be looked at: build/site-screenshots.

python -m mkdocs build --strict && python tests/docs/screenshots.py [PAGE ...]

For each page at the size of a desk and of a phone, light and dark: its first screen, and all of it.
Prints what is wider than the window, pictures that do not load, and texts of low contrast.
"""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tests"))

from support.browsers import CHROMIUM, MISSING, OpenPage, browser  # noqa: E402
from support.site_views import PAGES, VIEWS, faults, served  # noqa: E402

SITE = ROOT / "site"
PICTURES = ROOT / "build/site-screenshots"
TALLEST = 12_000
"""Pixels of a picture of a whole page."""


def main(pages: list[str]) -> None:
    """Take the pictures."""
    if not CHROMIUM.exists():
        sys.exit(MISSING)
    if not SITE.exists():
        sys.exit("there is no site: make docs")
    PICTURES.mkdir(parents=True, exist_ok=True)
    with served(SITE) as address, browser() as chromium:
        for name in pages or PAGES:
            for view, (size, theme) in VIEWS.items():
                seen = OpenPage(chromium, f"{address}/{name}.html", size, theme=theme)
                found = faults(seen.page) + seen.low_contrasts() + seen.errors
                path = PICTURES / f"{name.replace('/', '-')}-{view}.png"
                seen.page.screenshot(path=path)
                height = seen.page.evaluate("document.documentElement.scrollHeight")
                seen.page.set_viewport_size({**size, "height": min(height, TALLEST)})
                seen.page.screenshot(path=path.with_stem(f"{path.stem}-whole"))
                print(path.relative_to(ROOT), *found, sep="\n    ")
                seen.close()


if __name__ == "__main__":
    main(sys.argv[1:])
