"""The pictures of docs/page.md, taken of the real page.

python tests/web/screenshots.py    with the bundled models; the last tab needs RDKit
python tests/web/screenshots.py TEXT8 IN_PLACE ARITHMETIC [MOLECULES]    with models of your own
"""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tests"))

from indel.commands.serve import open_models  # noqa: E402
from indel.pretrained import MODELS  # noqa: E402
from indel.web.serving import running  # noqa: E402
from support.browsers import CHROMIUM, DESKTOP, MISSING, PHONE, Visit, browser  # noqa: E402

IMAGES = ROOT / "docs/images"
STEPS_BEFORE_END = 6
TABS = ("Repair", "Watch", "Fill", "Process", "Likelihood", "Molecules")


def main(names: list[str]) -> None:
    """Take the picture of each tab with its example, on a desk, on a phone, and in the dark."""
    if not CHROMIUM.exists():
        sys.exit(MISSING)
    IMAGES.mkdir(exist_ok=True)
    models = open_models(*(names or MODELS))
    with running(models, port=0) as address, browser() as chromium:
        for size, device, theme, tabs in (
            (DESKTOP, "desktop", "light", TABS),
            (PHONE, "phone", "light", TABS),
            (DESKTOP, "dark", "dark", ("Watch",)),
        ):
            seen = Visit(chromium, address, size, theme=theme)
            for tab in tabs:
                seen.open_tab(tab)
                _point(seen, tab)
                path = IMAGES / f"page-{tab.lower()}-{device}.png"
                seen.page.screenshot(path=path, full_page=True)
                print(path.relative_to(ROOT))
            seen.close()


def _point(seen: Visit, tab: str) -> None:
    """Show what a visitor would look at: the reasons of an edit, or a trajectory near its end."""
    edits = seen.page.locator(".place:visible")
    if tab == "Repair" and edits.count():
        edits.first.focus()
    for player in seen.page.locator("indel-player:visible").all():
        for _ in range(STEPS_BEFORE_END):
            player.press("ArrowLeft")
        player.evaluate("element => element.blur()")


if __name__ == "__main__":
    main(sys.argv[1:])
