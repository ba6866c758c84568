"""Pictures of the page by the real service in a headless Chromium.

    python -m tests.make_images            docs/images, which README.md shows
    python -m tests.make_images FOLDER     every view at 390 and 1280 pixels in both colour schemes,
                                           to be looked at

The game is the same every time: its shuffle is fixed and the model's choices are too.
"""

from __future__ import annotations

import logging
import os
import shutil
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import Any

from PIL import Image
from playwright.sync_api import sync_playwright
from werkzeug.serving import make_server

from serve import create_app
from skipbo_env.agents import make_agent
from tests.serve.test_page import CHROMIUM_ARGS, Tab

IMAGES = Path(__file__).parents[1] / "docs" / "images"
SEED = 11


@contextmanager
def service() -> Iterator[str]:
    """The address of the service with the models that ship."""
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = make_server("127.0.0.1", 0, create_app(testing=True), threaded=True)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def play(tab: Tab, moves: int) -> None:
    """Some of the moves that the hint has first, so that there is something on the table."""
    for _ in range(moves):
        if tab.page.locator(".hint").is_hidden():
            tab.act(lambda: tab.page.keyboard.press("h"), "hint")
        tab.act(tab.page.locator(".moves li button").first.click)


def to_the_end(tab: Tab) -> str:
    """Play the game that is on the table as the rule-based agent would; returns its id."""
    key = tab.page.url.rpartition("/")[2]
    adviser = make_agent("greedy")
    game = tab.context.request.get(f"{tab.url}v1/games/{key}").json()
    while game["result"] is None:
        move = {"ply": game["ply"], "action": adviser.act(game["position"])}
        answer = tab.context.request.post(f"{tab.url}v1/games/{key}/moves", data=move)
        game = answer.json()
    return key


def table(tab: Tab, shape: str = "2", moves: int = 14, **rules: Any) -> None:
    tab.deal(shape, seed=SEED, **rules)
    play(tab, moves)


def with_hint(tab: Tab) -> None:
    table(tab)
    tab.act(lambda: tab.page.keyboard.press("h"), "hint")


def selected(tab: Tab) -> None:
    table(tab, moves=9)
    tab.page.locator(".spot.usable").first.click()


def review(tab: Tab) -> None:
    tab.deal(seed=SEED, stock_size=10)
    key = to_the_end(tab)
    tab.page.goto(f"{tab.url}#review/{key}")
    tab.page.wait_for_selector(".chart")


def ask(tab: Tab) -> None:
    tab.open("#ask")
    tab.page.get_by_role("button", name="Example").click()
    tab.page.get_by_role("button", name="Ask", exact=True).click()
    tab.page.wait_for_selector(".moves li")


def score(tab: Tab) -> None:
    tab.open("#score")
    for number, name in ((1, "Ada"), (2, "Grace")):
        tab.page.get_by_label(f"Name {number}").fill(name)
    tab.page.get_by_role("button", name="Begin").click()
    for left in ("9", "17", "4"):
        tab.page.get_by_label("Grace, cards left").fill(left)
        tab.page.get_by_role("button", name="Enter this game").click()
        tab.page.wait_for_selector("td.won")


VIEWS: dict[str, Callable[[Tab], None]] = {
    "new": lambda tab: tab.open(),
    "table": with_hint,
    "selected": selected,
    "four": lambda tab: table(tab, "4", 6),
    "six": lambda tab: table(tab, "6", 4),
    "partners": lambda tab: table(tab, "4t2", 4),
    "teams": lambda tab: table(tab, "6t2", 3),
    "review": review,
    "ask": ask,
    "score": score,
}
SHOWN: tuple[tuple[str, Callable[[Tab], None], int, int, str, float], ...] = (
    ("table", with_hint, 1280, 860, "light", 1),
    ("phone", selected, 390, 844, "dark", 1.5),
    ("review", review, 1000, 860, "light", 1),
)


def picture(tab: Tab, path: Path, *, whole: bool) -> None:
    """A screenshot of few bytes: the page has few colours."""
    tab.until("document.getAnimations().length === 0")
    tab.page.evaluate("scrollTo(0, 0)")
    image = Image.open(BytesIO(tab.page.screenshot(full_page=whole))).convert("RGB")
    image.quantize(128, dither=Image.Dither.NONE).save(path, optimize=True)


def main(folder: str | None = None, *wanted: str) -> None:
    """Write the pictures."""
    program = os.environ.get("CHROMIUM") or shutil.which("chromium")
    with service() as url, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=CHROMIUM_ARGS)

        def tab(width: int, height: int, scheme: str, scale: float = 1) -> Tab:
            size = {"width": width, "height": height}
            return Tab(browser, url, viewport=size, color_scheme=scheme, device_scale_factor=scale)

        if folder is None:
            IMAGES.mkdir(exist_ok=True)
            for name, prepare, width, height, scheme, scale in SHOWN:
                shown = tab(width, height, scheme, scale)
                prepare(shown)
                picture(shown, IMAGES / f"{name}.png", whole=False)
                shown.close()
        else:
            Path(folder).mkdir(parents=True, exist_ok=True)
            for name in wanted or VIEWS:
                for width, height in ((390, 844), (1280, 860)):
                    seen = tab(width, height, "light")
                    VIEWS[name](seen)
                    for scheme in ("light", "dark"):
                        seen.page.emulate_media(color_scheme=scheme)
                        path = Path(folder) / f"{name}-{width}-{scheme}.png"
                        picture(seen, path, whole=True)
                    seen.close()
        browser.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
