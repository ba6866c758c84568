"""The table page: its files and headers, and the page itself in a headless Chromium.

Without Playwright's Python package or a chromium the tests in a browser are skipped with the
reason; with SKIPBO_REQUIRE_BROWSER=1 they fail. CHROMIUM names the program to start.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from flask.testing import FlaskClient
from werkzeug.serving import make_server

import skipbo_env
from serve import create_app
from skipbo_env import agents
from tests.serve.conftest import LISTED, fake_agent

STATIC = Path(__file__).parents[2] / "serve" / "static"
CSP = {
    "default-src": "'none'",
    "script-src": "'self'",
    "style-src": "'self'",
    "img-src": "'self' data:",
    "connect-src": "'self'",
    "base-uri": "'none'",
    "form-action": "'none'",
    "frame-ancestors": "'none'",
    "require-trusted-types-for": "'script'",
}
CHROMIUM_ARGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
WIDTHS = [(320, 640), (351, 700), (360, 780), (390, 844), (1280, 860)]

# Files and headers ---------------------------------------------------------------------------


def test_the_page_has_a_strict_policy_and_is_asked_for_again_only_when_changed(
    client: FlaskClient,
) -> None:
    first = client.get("/")
    assert first.status_code == 200
    assert first.mimetype == "text/html"
    policy = first.headers["Content-Security-Policy"].split("; ")
    assert dict(part.split(" ", 1) for part in policy) == CSP
    assert first.headers["Cache-Control"] == "no-cache"
    assert first.headers["X-Content-Type-Options"] == "nosniff"
    again = client.get("/", headers={"If-None-Match": first.headers["ETag"]})
    assert (again.status_code, again.data) == (304, b"")


@pytest.mark.parametrize("path", sorted(STATIC.iterdir()), ids=lambda path: path.name)
def test_every_file_is_served_with_its_type(client: FlaskClient, path: Path) -> None:
    answer = client.get(f"/static/{path.name}")
    types = {"html": "text/html", "css": "text/css", "js": "text/javascript"}
    assert answer.mimetype == types.get(path.suffix[1:], "image/svg+xml")
    assert answer.data == path.read_bytes()
    assert answer.headers["Cache-Control"] == "no-cache"
    assert answer.headers["ETag"]


@pytest.mark.parametrize(
    "name",
    [
        "nothing.js",
        "../app.py",
        "..%2fapp.py",
        "%2e%2e/app.py",
        "..\\app.py",
        "index.html%00.js",
        "/etc/passwd",
        "static/page.css",
        "",
    ],
)
def test_nothing_else_is_served(client: FlaskClient, name: str) -> None:
    answer = client.get(f"/static/{name}")
    assert answer.status_code == 404
    assert answer.mimetype == "application/problem+json"


def test_the_page_needs_nothing_from_elsewhere_and_nothing_inline() -> None:
    for path in STATIC.iterdir():
        text = path.read_text(encoding="utf-8")
        links = re.findall(r"\b(?:https?:)?//[a-z0-9.-]+\.[a-z]+", text)
        assert {link for link in links if "www.w3.org" not in link} == set(), path.name
        for unsafe in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval("):
            assert unsafe not in text, path.name
    page = (STATIC / "index.html").read_text(encoding="utf-8")
    assert re.findall(r"<style|style=|\son[a-z]+=", page) == []
    assert re.findall(r"<script(?![^>]* src=)", page) == []


# In a browser --------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    refuse = pytest.fail if os.environ.get("SKIPBO_REQUIRE_BROWSER") == "1" else pytest.skip
    program = os.environ.get("CHROMIUM") or shutil.which("chromium")
    if program is None:
        refuse("no chromium here (Debian: apt-get install chromium)")
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        refuse("Playwright's Python package is not installed (pip install playwright)")
    with sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=program, args=CHROMIUM_ARGS)
        yield running
        running.close()


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    """The address of a service whose agents are fakes: no model, no time."""
    with pytest.MonkeyPatch.context() as patch:
        best = {"name": "best", "method": "best", "model": None, "sha256": None}
        patch.setattr(agents, "list_agents", lambda models_dir=None: [*LISTED, best])
        patch.setattr(skipbo_env, "make_agent", fake_agent)
        server = make_server("127.0.0.1", 0, create_app(testing=True), threaded=True)
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()
        thread.join()
        server.server_close()


class Tab:
    """A browser's page with what it asked for, and short names for what players do."""

    def __init__(self, browser: Any, url: str, **context: Any) -> None:
        self.url = url
        self.context = browser.new_context(
            **{"viewport": {"width": 1280, "height": 860}, **context}
        )
        self.context.set_default_timeout(20_000)
        self.page = self.context.new_page()
        self.faults: list[str] = []
        self.asked: list[str] = []
        self.expected: tuple[str, ...] = ()
        self.moves: list[tuple[int, set[int]]] = []  # action sent, actions legal at that moment
        self._legal: set[int] = set()
        self.page.on("pageerror", lambda error: self.faults.append(str(error)))
        self.page.on("console", self._console)
        self.page.on("request", self._request)
        self.page.on("response", self._response)

    def _console(self, message: Any) -> None:
        if message.type in ("error", "warning"):
            self.faults.append(message.text)

    def _request(self, request: Any) -> None:
        self.asked.append(request.url)
        if request.url.endswith("/moves"):
            self.moves.append((request.post_data_json["action"], self._legal))

    def _response(self, response: Any) -> None:
        if re.search(r"/v1/games(/[^/]+(/moves|/undo)?)?$", response.url) and response.ok:
            self._legal = {option["action"] for option in response.json()["legal"]}

    def open(self, where: str = "") -> None:
        self.page.goto(self.url + where)
        self.page.wait_for_selector("main form, main .spot, main table, main .review, #alert p")

    def deal(self, table: str = "2", seed: int = 7, first: int = 0, **rules: Any) -> None:
        """A new game through the form, its shuffle fixed on the way."""

        def fixed(route: Any) -> None:
            body = route.request.post_data_json
            body["seed"] = seed
            body["rules"].update({"first_player": first, **rules})
            route.continue_(post_data=json.dumps(body))

        self.page.route("**/v1/games", fixed)
        self.open()
        self.page.select_option("[data-key='form:table']", table)
        self.page.get_by_role("button", name="Deal the cards").click()
        self.page.wait_for_selector(".hand .spot")
        self.page.unroute("**/v1/games")

    def spot(self, key: str) -> Any:
        return self.page.locator(f"[data-key='{key}']")

    def text(self, selector: str) -> str:
        return " ".join(self.page.locator(selector).all_text_contents())

    def until(self, script: str) -> None:
        """Wait for a condition. Playwright's own way needs eval, which the policy forbids."""
        for _ in range(400):
            if self.page.evaluate(script):
                return
            self.page.wait_for_timeout(50)
        raise AssertionError(f"never: {script}")

    def act(self, work: Callable[[], None], call: str = "moves") -> dict[str, Any]:
        """Do something that sends a request, and wait until its answer is on the table."""
        with self.page.expect_response(re.compile(f"/{call}$")) as response:
            work()
        self.page.wait_for_selector("main:not([aria-busy])")
        answer = response.value.json()
        assert isinstance(answer, dict)
        return answer

    def come_back(self, pattern: str, where: str, game: str) -> None:
        """Go somewhere and back to a game before the answer to a request has come, which it then
        does.
        """
        held: list[Any] = []
        self.page.route(pattern, lambda route: held.append(route))
        self.page.evaluate(f"location.hash = '{where}'")
        while not held:
            self.page.wait_for_timeout(20)
        self.page.evaluate(f"location.hash = '{game}'")
        self.page.wait_for_selector(".hand .spot")
        held[0].continue_()
        self.page.wait_for_timeout(300)

    def step(self) -> dict[str, Any]:
        """Play what seems best, by clicks: a stock card, a card on a pile, or a discard."""
        for source in (".spot.stock.usable", ".spot.held.usable", ".spot.discard.usable"):
            for place in range(self.page.locator(source).count()):
                self.page.locator(source).nth(place).click()
                targets = self.page.locator(".spot.build.target")
                if targets.count():
                    return self.act(targets.first.click)
                self.page.keyboard.press("Escape")
        self.page.locator(".spot.held.usable").first.click()
        return self.act(self.page.locator(".spot.discard.target").first.click)

    def axe(self) -> list[str]:
        """What axe finds, once everything has come to rest."""
        from axe_playwright_python.sync_playwright import Axe

        self.until("document.getAnimations().length === 0")
        found = Axe().run(self.page).response["violations"]
        return [f"{fault['id']}: {fault['nodes'][0]['html'][:200]}" for fault in found]

    def overflow(self) -> int:
        return int(
            self.page.evaluate("document.documentElement.scrollWidth - document.body.clientWidth")
        )

    def small_targets(self) -> list[str]:
        """Controls of fewer than 44 pixels each way."""
        script = """[...document.querySelectorAll("button, select, a, summary, input, label")]
            .filter((e) => !e.matches("label") || e.closest(".check"))
            .filter((e) => e.offsetParent && !e.matches(".skip, input[type=checkbox]"))
            .map((e) => [e.getBoundingClientRect(), e.outerHTML.slice(0, 120)])
            .filter(([box]) => box.width < 43.9 || box.height < 43.9)
            .map(([box, html]) => `${box.width}x${box.height} ${html}`)"""
        return list(self.page.evaluate(script))

    def close(self) -> None:
        self.context.close()
        faults = [f for f in self.faults if not any(re.search(e, f) for e in self.expected)]
        assert faults == []
        outside = [u for u in self.asked if not u.startswith((self.url, "data:"))]
        assert outside == []
        for action, legal in self.moves:
            assert action in legal


@pytest.fixture
def new_tab(browser: Any, url: str) -> Iterator[Callable[..., Tab]]:
    tabs: list[Tab] = []

    def make(**context: Any) -> Tab:
        tabs.append(Tab(browser, url, **context))
        return tabs[-1]

    yield make
    for tab in tabs:
        tab.close()


@pytest.fixture
def tab(new_tab: Callable[..., Tab]) -> Tab:
    return new_tab()


@pytest.mark.browser
def test_a_whole_short_game_by_clicks_is_scored(tab: Tab) -> None:
    tab.deal(stock_size=3)
    view: dict[str, Any] = {"result": None}
    for _ in range(200):
        view = tab.step()
        if view["result"]:
            break
    result = view["result"]
    assert result is not None
    points = max(result["scores"])
    told = "You win" if result["winner"] == 0 else "best wins"
    assert tab.text(".status") == f"{told}: {points} points."
    assert str(points) in tab.text(".sheet-table tfoot")
    assert tab.page.locator(".spot.usable").count() == 0
    first = tab.page.url
    with tab.page.expect_request(re.compile("/v1/games$")) as request:
        tab.page.get_by_role("button", name="Next game of the match").click()
    assert request.value.post_data_json["rules"]["first_player"] in (0, 1)
    tab.until("document.querySelectorAll('.match tbody tr').length === 2")
    assert tab.page.url != first


@pytest.mark.browser
def test_selecting_shows_where_a_card_may_go_and_nothing_else_is_sent(tab: Tab) -> None:
    tab.deal()
    assert tab.page.locator(".spot.target").count() == 0
    card = tab.page.locator(".spot.held.usable").first
    card.click()
    assert card.get_attribute("aria-pressed") == "true"
    targets = [t.get_attribute("data-target") for t in tab.page.locator(".spot.target").all()]
    assert {f"discard:0:{pile}" for pile in range(4)} <= set(targets)
    for name in ("Discard", "here"):
        assert name in (tab.spot("discard:0:2").get_attribute("aria-label") or "")
    other = next(f"build:{i}" for i in range(4) if f"build:{i}" not in targets)
    tab.spot(other).click()
    assert tab.moves == []
    card.click()
    if card.get_attribute("aria-pressed") == "true":
        card.click()
    assert tab.page.locator(".spot.target, .spot.chosen").count() == 0


@pytest.mark.browser
def test_play_by_keyboard_alone_keeps_the_focus_on_the_table(tab: Tab) -> None:
    tab.deal()
    for _ in range(40):
        tab.page.keyboard.press("Tab")
        if tab.page.evaluate("document.activeElement.dataset.key") == "place:0":
            break
    for _ in range(6):
        tab.page.keyboard.press("Enter")
        assert tab.page.locator(".spot.chosen").count() == 1
        tab.page.keyboard.press("ArrowRight")
        tab.until("document.activeElement.matches('.spot.target, .spot.chosen')")
        while not tab.page.evaluate("document.activeElement.matches('.spot.target')"):
            tab.page.keyboard.press("ArrowRight")
        tab.act(lambda: tab.page.keyboard.press("Enter"))
        assert tab.page.evaluate("document.activeElement.matches('.spot')")
        tab.spot("place:0").focus()
    tab.page.keyboard.press("Enter")
    tab.page.keyboard.press("Escape")
    assert tab.page.locator(".spot.chosen").count() == 0
    tab.page.keyboard.press("Enter")
    tab.act(lambda: tab.page.keyboard.press("Shift+Digit2"))
    tab.act(lambda: tab.page.keyboard.press("h"), "hint")
    assert tab.page.locator(".moves li").count() > 0
    tab.page.keyboard.press("h")
    assert tab.page.locator(".hint").is_hidden()
    # Whoever does not want the letters can have them off.
    tab.page.get_by_role("button", name="Settings").click()
    tab.page.get_by_label("Shortcut keys").uncheck()
    tab.page.get_by_role("button", name="Done").click()
    asked = len(tab.asked)
    tab.page.keyboard.press("h")
    tab.page.wait_for_timeout(200)
    assert len(tab.asked) == asked


def drag(tab: Tab, source: str, target: str) -> None:
    start, end = tab.spot(source).bounding_box(), tab.spot(target).bounding_box()
    mouse = tab.page.mouse
    mouse.move(start["x"] + 20, start["y"] + 20)
    mouse.down()
    mouse.move(start["x"] + 40, start["y"] + 10)
    mouse.move(end["x"] + 20, end["y"] + 20, steps=4)
    assert tab.page.locator(".ghost").count() == 1
    mouse.up()


@pytest.mark.browser
def test_drag_to_a_pile_plays_and_elsewhere_does_nothing(tab: Tab) -> None:
    tab.deal()
    card = tab.page.locator(".hand .card .rank").first.text_content()
    drag(tab, "place:0", "stock:0")
    tab.until("!document.querySelector('.ghost, .lifted')")
    assert tab.moves == []
    assert tab.page.locator(".spot.chosen").count() == 0
    view = tab.act(lambda: drag(tab, "place:0", "discard:0:3"))
    assert view["position"]["players"][0]["discards"][3] == [card]
    assert tab.page.locator(".ghost").count() == 0


@pytest.mark.browser
def test_touch_taps_and_drags_without_scrolling_the_page(new_tab: Callable[..., Tab]) -> None:
    tab = new_tab(viewport={"width": 390, "height": 600}, has_touch=True, is_mobile=True)
    tab.deal()
    tab.spot("place:0").tap()
    tab.act(tab.spot("discard:0:1").tap)
    tab.spot("place:0").scroll_into_view_if_needed()
    before = tab.page.evaluate("scrollY")
    start, end = tab.spot("place:0").bounding_box(), tab.spot("discard:0:2").bounding_box()
    client = tab.context.new_cdp_session(tab.page)

    def touch(kind: str, x: float, y: float) -> None:
        points = [] if kind == "touchEnd" else [{"x": x, "y": y}]
        client.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})

    def swipe() -> None:
        x, y = start["x"] + 20, start["y"] + 20
        touch("touchStart", x, y)
        for part in range(1, 6):
            touch(
                "touchMove",
                x + (end["x"] - start["x"]) * part / 5,
                y + (end["y"] - start["y"]) * part / 5,
            )
        touch("touchEnd", 0, 0)

    view = tab.act(swipe)
    assert len(view["position"]["players"][0]["discards"][2]) == 1
    assert tab.page.evaluate("scrollY") == before


@pytest.mark.browser
def test_a_hint_comes_when_asked_for_with_odds_reasons_and_the_line(tab: Tab) -> None:
    tab.deal()
    assert tab.page.locator(".hint").is_hidden()
    assert not any(address.endswith("/hint") for address in tab.asked)
    answer = tab.act(tab.page.get_by_role("button", name="Hint").click, "hint")
    rows = tab.page.locator(".moves li")
    assert 1 < rows.count() <= 5
    best = answer["moves"][0]
    assert "60.0%" in rows.first.text_content()
    assert "best" in rows.first.locator(".verdict").text_content()
    bar, whole = rows.first.locator(".fill"), rows.first.locator(".meter")
    share = bar.bounding_box()["width"] / whole.bounding_box()["width"]
    assert share == pytest.approx(best["win"], abs=0.02)
    assert rows.first.locator(".why").text_content()
    assert "Your chance to win: 60.0%" in tab.text(".by")
    assert tab.page.locator(".hinted").count() == 2
    tab.until("document.getElementById('live').textContent.startsWith('Best:')")
    tab.act(rows.nth(0).get_by_role("button", name="Play").click)
    assert [action for action, _ in tab.moves] == [best["action"]]
    assert tab.page.locator(".hint").is_hidden()


@pytest.mark.browser
def test_undo_takes_back_a_move_that_showed_nothing(tab: Tab) -> None:
    tab.deal()
    for _ in range(40):
        before = tab.text(".felt")
        view = tab.step()
        if view["can_undo"]:
            break
    assert view["can_undo"]
    undo = tab.page.get_by_role("button", name="Undo")
    assert undo.get_attribute("aria-disabled") is None
    tab.act(undo.click, "undo")
    assert tab.text(".felt") == before
    assert undo.get_attribute("aria-disabled") == "true"
    asked = len(tab.asked)
    undo.click(force=True)
    assert "Nothing to take back" in tab.text(".status")
    assert len(tab.asked) == asked


@pytest.mark.browser
def test_last_moves_are_listed_marked_and_announced(tab: Tab) -> None:
    tab.deal(first=1)
    while True:
        view = tab.step()
        if any(event.get("player") == 1 for event in view["events"]):
            break
    assert tab.page.locator(".log li").count() >= 2
    assert "best" in tab.text(".log li strong")
    discard = next(e for e in view["events"] if e["type"] == "discard" and e["player"] == 1)
    marked = tab.page.locator(f"[data-at='discard:1:{discard['to']}']")
    assert "fresh" in marked.get_attribute("class")
    tab.until("document.getElementById('live').textContent.includes('best')")
    assert "Your stock shows" in tab.text("#live")


@pytest.mark.browser
def test_a_game_is_resumed_by_its_address_and_two_windows_agree(
    tab: Tab, new_tab: Callable[..., Tab]
) -> None:
    tab.deal()
    tab.step()
    address = tab.page.url
    assert re.search(r"#game/[\w-]{20,}$", address)
    tab.page.reload()
    tab.page.wait_for_selector(".hand .spot")
    second = new_tab()
    second.open(address.removeprefix(tab.url))
    assert second.text(".felt") == tab.text(".felt")
    second.step()
    tab.expected = (r"409",)
    tab.page.locator(".spot.held.usable").first.click()
    tab.act(tab.page.locator(".spot.discard.target").first.click)
    assert "has changed since" in tab.text(".status")
    assert tab.text(".felt") == second.text(".felt")
    tab.open("#")
    tab.page.get_by_role("link", name="Go on with your last game").click()
    tab.page.wait_for_selector(".hand .spot")
    assert tab.page.url == address


@pytest.mark.browser
def test_a_service_that_is_gone_an_agent_or_a_game_is_said_so(tab: Tab) -> None:
    from playwright.sync_api import expect

    tab.expected = (r"ERR_FAILED|503|404",)
    tab.deal()
    card, pile = tab.spot("place:0"), tab.spot("discard:0:0")
    tab.page.route("**/v1/**", lambda route: route.abort())
    card.click()
    pile.click()
    alert = tab.page.get_by_role("alert")
    tab.page.wait_for_selector("#alert p")
    assert "does not answer" in alert.first.text_content()
    tab.page.unroute("**/v1/**")
    tab.page.get_by_role("button", name="Try again").click()
    tab.until("!document.querySelector('#alert p')")
    problem = {"type": "/problems/agent-gone", "status": 503, "detail": "no agent 'x' here"}
    tab.page.route("**/moves", lambda route: route.fulfill(status=503, json=problem))
    card.click()
    pile.click()
    tab.page.wait_for_selector("#alert p")
    assert "The agent that should answer is not available" in alert.first.text_content()
    tab.page.unroute("**/moves")
    tab.act(lambda: (card.click(), pile.click()))
    assert tab.page.locator("#alert p").count() == 0
    tab.open("#game/nothing")
    expect(alert.first).to_contain_text("no game at this address")
    tab.page.route("**/v1/agents", lambda route: route.abort())
    tab.page.goto(tab.url + "#")
    tab.page.reload()
    tab.page.wait_for_selector("#alert p")
    assert "Is it running?" in alert.first.text_content()


@pytest.mark.browser
@pytest.mark.parametrize("page", ["ask", "score", "review"])
def test_a_view_that_comes_late_or_not_at_all(tab: Tab, page: str) -> None:
    """What was left by then stays away; what the service could not give comes on a new try."""
    tab.expected = ("ERR_FAILED", "404")
    tab.deal()
    game = tab.page.evaluate("location.hash")
    tab.come_back(f"**/static/{page}.js*", f"#{page}/nothing", game)
    assert tab.page.locator(".hand .spot").count() > 0
    assert tab.page.locator("#alert p").count() == 0
    tab.page.unroute(f"**/static/{page}.js*")

    tab.page.reload()
    tab.page.wait_for_selector(".hand .spot")
    tab.page.route(f"**/static/{page}.js*", lambda route: route.abort())
    tab.page.evaluate(f"location.hash = '{page}'")
    tab.page.wait_for_selector("#alert p")
    assert "does not answer" in tab.text("#alert p")
    assert tab.page.locator(".hand").count() == 0
    tab.page.unroute(f"**/static/{page}.js*")
    tab.page.get_by_role("button", name="Try again").click()
    tab.page.wait_for_selector("main h1")


@pytest.mark.browser
def test_a_late_answer_for_another_game_changes_nothing(tab: Tab) -> None:
    tab.expected = ("404",)
    tab.deal()
    game = tab.page.evaluate("location.hash")
    tab.come_back("**/v1/games/slow", "#game/slow", game)
    assert tab.page.locator("#alert p").count() == 0
    assert tab.page.evaluate("localStorage.getItem('skipbo.last')") == f'"{game[6:]}"'
    tab.open("#game/%E0%A4%A")
    assert "no game at this address" in tab.text("#alert p")


@pytest.mark.browser
def test_settings_leave_what_was_typed(tab: Tab) -> None:
    tab.open()
    tab.page.select_option("[data-key='form:table']", "6")
    tab.page.locator("summary").click()
    stock = tab.page.get_by_label("Cards in each stock")
    stock.fill("3")
    tab.page.get_by_role("button", name="Settings").click()
    tab.page.get_by_role("button", name="Done").click()
    tab.page.wait_for_timeout(100)
    assert stock.input_value() == "3"
    assert tab.page.locator("[data-key='form:table']").input_value() == "6"
    tab.open("#score")
    tab.page.get_by_label("Name 1").fill("Ada")
    tab.page.get_by_role("button", name="Settings").click()
    tab.page.get_by_role("button", name="Done").click()
    tab.page.wait_for_timeout(100)
    assert tab.page.get_by_label("Name 1").input_value() == "Ada"


@pytest.mark.browser
def test_axe_finds_nothing_in_both_colour_schemes(tab: Tab) -> None:
    def check(where: str) -> None:
        for scheme in ("light", "dark"):
            tab.page.emulate_media(color_scheme=scheme)
            assert tab.axe() == [], (where, scheme)

    for page in ("", "#ask", "#score"):
        tab.page.goto("about:blank")
        tab.open(page)
        check(page)
    for table in ("2", "6", "4t2"):
        tab.deal(table)
        tab.step()
        tab.page.locator(".spot.held.usable").first.click()
        tab.act(lambda: tab.page.keyboard.press("h"), "hint")
        check(table)
    tab.page.keyboard.press("n")
    tab.page.wait_for_selector("dialog form")
    check("new game")
    tab.page.get_by_role("button", name="Close").last.click()
    tab.page.get_by_role("button", name="Settings").click()
    check("settings")


@pytest.mark.browser
def test_no_sideways_scrolling_and_targets_for_thumbs(tab: Tab) -> None:
    def check(where: str) -> None:
        for width, height in WIDTHS:
            tab.page.set_viewport_size({"width": width, "height": height})
            # A card still on its way comes from where it lay on a screen of the width before.
            tab.until("document.getAnimations().length === 0")
            assert tab.overflow() <= 0, (where, width)
            assert tab.small_targets() == [], (where, width)

    for page in ("", "#ask", "#score"):
        tab.page.goto("about:blank")
        tab.open(page)
        check(page)
    for table in ("2", "3", "6", "4t2", "6t3", "6t2"):
        tab.deal(table)
        tab.step()
        check(table)
    tab.act(lambda: tab.page.keyboard.press("h"), "hint")
    check("hint")


@pytest.mark.browser
def test_the_policy_blocks_inline_code_styles_and_html(tab: Tab) -> None:
    tab.expected = (r"Content Security Policy|TrustedHTML|TrustedScript|This document requires",)
    tab.open()
    blocked = tab.page.evaluate("""() => {
        const refused = [];
        const attempt = (name, work) => { try { work(); } catch (error) { refused.push(name); } };
        attempt("html", () => { document.body.innerHTML = "<p>x</p>"; });
        const code = document.createElement("script");
        attempt("script", () => { code.textContent = "window.ran = 1"; });
        const handler = document.createElement("img");
        attempt("handler", () => handler.setAttribute("onerror", "window.ran = 1"));
        handler.src = "data:,x";
        document.body.append(handler);
        const styled = document.createElement("p");
        styled.setAttribute("style", "position: fixed");
        document.body.append(styled);
        return [refused, getComputedStyle(styled).position];
    }""")
    tab.page.wait_for_timeout(200)
    assert {"html", "script"} <= set(blocked[0])
    assert blocked[1] == "static"
    assert tab.page.evaluate("window.ran") is None
    from playwright.sync_api import Error

    with pytest.raises(Error, match="unsafe-eval"):  # Playwright polls with eval
        tab.page.wait_for_function("window.never", timeout=5_000)


@pytest.mark.browser
def test_motion_is_short_and_off_where_it_is_not_wanted(new_tab: Callable[..., Tab]) -> None:
    script = """() => { window.durations = []; const animate = Element.prototype.animate;
        Element.prototype.animate = function (frames, options) {
            window.durations.push(options.duration);
            return animate.call(this, frames, options); }; }"""
    for motion in ("no-preference", "reduce"):
        tab = new_tab(reduced_motion=motion)
        tab.deal()
        tab.page.evaluate(script)
        for _ in range(3):
            tab.step()
        durations = tab.page.evaluate("window.durations")
        assert all(duration < 200 for duration in durations)
        assert bool(durations) == (motion == "no-preference")


@pytest.mark.browser
def test_several_people_at_one_screen_see_only_their_own_cards(tab: Tab) -> None:
    tab.open()
    tab.page.select_option("[data-seat='1']", "person:")
    tab.page.get_by_role("button", name="Deal the cards").click()
    show = tab.page.get_by_role("button", name="Show my cards")
    for _ in range(3):
        show.wait_for()
        assert tab.page.locator(".hand").count() == 0
        assert tab.page.locator(".log").is_hidden()
        name = tab.text(".curtain h2")
        show.click()
        assert tab.page.locator(".hand .spot").count() > 0
        tab.page.locator(".spot.held.usable").first.click()
        tab.act(tab.page.locator(".spot.discard.target").first.click)
        show.wait_for()
        assert tab.text(".curtain h2") != name


@pytest.mark.browser
def test_a_match_of_several_people_names_them_the_same_for_all(tab: Tab) -> None:
    """And nothing is taken back behind the curtain."""
    tab.page.route(
        "**/v1/games",
        lambda route: route.continue_(
            post_data=json.dumps(
                {**(body := route.request.post_data_json), "seed": 3}
                | {"rules": {**body["rules"], "stock_size": 3, "first_player": 0}}
            )
        ),
    )
    tab.open()
    tab.page.select_option("[data-seat='1']", "person:")
    tab.page.get_by_role("button", name="Deal the cards").click()
    show = tab.page.get_by_role("button", name="Show my cards")
    taken_back = False
    for _ in range(300):
        tab.page.wait_for_selector(".curtain, .hand .spot, [data-key='result:review']")
        if tab.page.locator("[data-key='result:review']").count():
            break
        if show.count():
            show.click()
        if tab.step()["can_undo"] and not taken_back:
            tab.page.reload()
            show.wait_for()
            tab.page.keyboard.press("u")
            assert tab.page.locator("[data-key='undo'][aria-disabled]").count() == 1
            tab.page.wait_for_timeout(100)
            assert not any(url.endswith("/undo") for url in tab.asked)
            taken_back = True
    assert taken_back
    assert tab.page.locator(".match thead th").all_text_contents() == [
        "Game",
        "Player 1",
        "Player 2",
    ]


@pytest.mark.browser
def test_playing_card_names_on_request(tab: Tab) -> None:
    from playwright.sync_api import expect

    tab.deal(copies=1, wilds=60, stock_size=5)
    assert tab.page.locator(".hand .card.wild .rank").first.text_content() == "S"
    tab.page.get_by_role("button", name="Settings").click()
    tab.page.get_by_label("Playing-card names").check()
    tab.page.get_by_role("button", name="Done").click()
    # A dialog tells that it has closed a moment later, and only then is the table drawn anew.
    expect(tab.page.locator(".hand .card.wild .rank").first).to_have_text("K")
    assert "king or joker" in (tab.page.locator(".hand .spot").last.get_attribute("aria-label"))


@pytest.mark.browser
def test_the_position_editor_asks_and_says_which_field_is_wrong(tab: Tab) -> None:
    tab.expected = ("422",)
    tab.open("#ask")
    tab.page.get_by_role("button", name="Example").click()
    tab.page.get_by_role("button", name="Ask", exact=True).click()
    tab.page.wait_for_selector(".moves li")
    assert "60.0%" in tab.text(".moves li")
    tab.page.get_by_label("Who is asked").select_option("greedy")
    tab.page.get_by_role("button", name="Ask", exact=True).click()
    tab.page.get_by_text("It gives no probabilities").wait_for()
    assert tab.page.locator(".meter").count() == 0
    tab.page.get_by_label("Who is asked").select_option("")
    hand = tab.page.get_by_label("Your hand")
    hand.fill("3 6 8 Q")
    with tab.page.expect_request(re.compile("/v1/suggest$")) as request:
        tab.page.get_by_role("group", name="Cards to enter").get_by_role(
            "button", name="Wild"
        ).click()
        tab.page.get_by_role("button", name="Ask", exact=True).click()
    assert request.value.post_data_json["position"]["hand"] == ["3", "6", "8", "Q", "S"]
    hand.fill("3 6 8 13")
    tab.page.get_by_role("button", name="Ask", exact=True).click()
    tab.page.wait_for_selector("[aria-invalid='true']")
    assert hand.get_attribute("aria-invalid") == "true"
    assert tab.page.evaluate("document.activeElement.getAttribute('aria-invalid')") == "true"
    assert tab.text(".error-text").startswith("'13' is no card")


@pytest.mark.browser
def test_the_scorekeeper_adds_up_takes_back_and_is_found_again(tab: Tab) -> None:
    tab.open("#score")
    tab.page.get_by_label("Name 1").fill("Ada")
    tab.page.get_by_label("Name 2").fill("Grace")
    tab.page.get_by_role("button", name="Begin").click()
    tab.page.get_by_label("Grace, cards left").fill("9")
    tab.page.get_by_role("button", name="Enter this game").click()
    tab.page.wait_for_selector("td.won")
    assert tab.text("tfoot td b") == "70 0"
    tab.page.get_by_label("Who went out").select_option("1")
    tab.page.get_by_label("Ada, cards left").fill("4")
    tab.page.get_by_role("button", name="Enter this game").click()
    tab.page.wait_for_selector("tbody tr:nth-child(2)")
    assert tab.text("tfoot td b") == "70 45"
    tab.page.reload()
    tab.page.wait_for_selector("tbody tr:nth-child(2)")
    assert "Grace" in tab.text("thead")
    tab.page.get_by_role("button", name="Take the last game back").click()
    tab.until("document.querySelectorAll('tbody tr').length === 1")
    assert tab.text("tfoot td b") == "70 0"


@pytest.mark.browser
def test_long_names_stay_in_their_columns(tab: Tab) -> None:
    names = ["Alessandro", "Christine", "Friederike", "Sebastian", "Katharina", "M" * 24]
    tab.page.set_viewport_size({"width": 390, "height": 844})
    tab.open()
    tab.page.evaluate(f"localStorage.setItem('skipbo.score.names', '{json.dumps(names)}')")
    tab.open("#score")
    tab.page.get_by_label("Points to win").fill("25")
    tab.page.get_by_role("button", name="Begin").click()
    tab.page.get_by_label("Who went out").select_option("5")
    for name in names[:5]:
        tab.page.get_by_label(f"{name}, cards left").fill("9")
    tab.page.get_by_role("button", name="Enter this game").click()
    tab.page.get_by_role("heading", name="won the match").wait_for()
    for width, height in WIDTHS:
        tab.page.set_viewport_size({"width": width, "height": height})
        assert tab.overflow() <= 0, width
        wide = "[...document.querySelectorAll('th')].filter((e) => e.scrollWidth > e.clientWidth)"
        assert tab.page.evaluate(f"{wide}.length") == 0, width


@pytest.mark.browser
def test_a_finished_game_is_reviewed_with_a_chart(tab: Tab, new_tab: Callable[..., Tab]) -> None:
    tab.expected = ("409",)
    tab.deal(stock_size=2)
    running = tab.page.url.rpartition("/")[2]
    tab.page.goto(f"{tab.url}#review/{running}")
    tab.page.wait_for_selector("#alert p")
    assert "once it is over" in tab.text("#alert p")
    tab.page.get_by_role("button", name="Back to the game").click()
    tab.page.wait_for_selector(".hand .spot")
    while not tab.step()["result"]:
        pass
    tab.page.get_by_role("link", name="Review the game").click()
    tab.page.wait_for_selector(".chart")
    assert "You" in (tab.page.locator(".chart").get_attribute("aria-label") or "")
    assert tab.page.locator(".review table thead th").count() == 2
    tab.page.get_by_role("button", name="All decisions").click()
    assert tab.page.locator(".review .moves li").count() > 0
    assert tab.axe() == []
    with tab.page.expect_download() as download:
        tab.page.get_by_role("button", name="Save the record").click()
    assert json.loads(download.value.path().read_text())["format"] == "skipbo-record"
    small = new_tab(viewport={"width": 320, "height": 640}, color_scheme="dark")
    small.open(f"#review/{running}")
    small.page.wait_for_selector(".chart")
    assert small.overflow() <= 0
    assert small.small_targets() == []
    assert small.axe() == []


@pytest.mark.browser
def test_another_agent_may_judge_and_takes_its_time(tab: Tab) -> None:
    tab.deal(stock_size=1)
    while not tab.step()["result"]:
        pass
    tab.page.get_by_role("link", name="Review the game").click()
    tab.page.wait_for_selector(".chart")
    judge = tab.page.get_by_label("Judged by")
    assert "search:fake, which takes minutes" in judge.inner_text()
    with tab.page.expect_response(re.compile("/v1/analysis$")) as response:
        judge.select_option("search:fake")
    assert response.value.status == 202
    tab.page.get_by_text("Judged by search:fake.").wait_for()
    assert tab.page.locator(".chart").count() == 1
    assert tab.page.evaluate("document.activeElement.dataset.key") == "review:judge"
    assert tab.axe() == []


@pytest.mark.browser
def test_opponents_are_listed_by_kind(tab: Tab) -> None:
    tab.open()
    groups = tab.page.locator("[data-seat='1'] optgroup").evaluate_all(
        "all => all.map(g => g.label)"
    )
    assert groups == ["Trained models", "With search, which takes longer", "By rules"]
    assert tab.page.locator("[data-seat='1']").input_value() == "best"
