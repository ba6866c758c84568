"""What whoever runs the service has: a rate limit, metrics, the page of all calls."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import threading
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from flask import Flask
from flask.testing import FlaskClient

from serve import create_app
from serve.docs import page
from serve.limits import RateLimit
from serve.metrics import BUCKETS, Metrics
from serve.openapi import document
from serve.operations import OPERATIONS
from serve.problems import KINDS, Problem
from serve.settings import METRICS_VARIABLE, Settings
from skipbo_env import agents
from tests.serve.conftest import LISTED
from tests.serve.test_suggest import assert_problem


def asks(limit: RateLimit, address: str | None, times: int = 1) -> int:
    """How many of so many requests are let through."""
    allowed = 0
    for _ in range(times):
        try:
            limit.check(address)
        except Problem as problem:
            if problem.kind != "too-many-requests" or int(problem.headers["Retry-After"]) < 1:
                raise
        else:
            allowed += 1
    return allowed


def test_tokens_are_used_up_and_come_back() -> None:
    now = [0.0]
    limit = RateLimit(2.0, 5, clock=lambda: now[0])
    assert asks(limit, "192.0.2.1", 20) == 5
    assert asks(limit, "192.0.2.2", 20) == 5
    now[0] = 0.4
    assert asks(limit, "192.0.2.1", 5) == 0
    now[0] = 1.6
    assert asks(limit, "192.0.2.1", 5) == 3
    now[0] = 1000.0
    assert asks(limit, "192.0.2.1", 20) == 5


def test_a_client_is_an_address_or_a_network() -> None:
    limit = RateLimit(0.001, 1)
    for address, allowed in (
        ("2001:db8::1", 1),
        ("2001:db8::ffff:2", 0),
        ("2001:db8:0:1::1", 1),
        ("fe80::1%eth0", 1),
        ("fe80::2%eth1", 0),
        ("192.0.2.1", 1),
        ("::ffff:192.0.2.1", 0),
        (None, 1),
        ("", 0),
        ("no address", 1),
    ):
        assert asks(limit, address) == allowed, address


def test_the_table_of_clients_stays_small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(RateLimit, "CLIENTS", 100)
    limit = RateLimit(0.001, 1)
    for k in range(1000):
        asks(limit, f"10.0.{k // 256}.{k % 256}")
    assert len(limit._clients) == 100
    assert asks(limit, "10.0.3.231") == 0  # the last one is remembered


def test_who_asks_too_often_gets_429(fakes: None) -> None:
    app = create_app(
        testing=True,
        settings=Settings(rate_limit=0.01, cors_origin=("https://good.example",)),
    )
    client = app.test_client()
    statuses = [client.get("/v1/agents").status_code for _ in range(61)]
    assert statuses == [200] * 60 + [429]
    response = client.post("/v1/suggest", json={}, headers={"Origin": "https://good.example"})
    assert_problem(response, 429, "too-many-requests")
    assert 1 <= int(response.headers["Retry-After"]) <= 100
    assert response.headers["Access-Control-Allow-Origin"] == "https://good.example"
    assert client.get("/healthz").status_code == client.get("/readyz").status_code == 200
    other = {"REMOTE_ADDR": "192.0.2.7"}
    assert client.get("/v1/agents", environ_base=other).status_code == 200
    # What a client says of itself changes nothing unless a proxy is told of.
    spoofed = {"X-Forwarded-For": "192.0.2.8"}
    assert client.get("/v1/agents", headers=spoofed).status_code == 429


def test_behind_a_proxy_the_client_is_whom_the_proxy_names(fakes: None) -> None:
    client = create_app(testing=True, settings=Settings(rate_limit=0.01, proxies=1)).test_client()
    for address in ("192.0.2.1", "192.0.2.2"):
        # What stands before the proxy's own entry was said by the client.
        named = [{"X-Forwarded-For": f"10.9.9.{k}, {address}"} for k in range(61)]
        statuses = [client.get("/v1/agents", headers=headers).status_code for headers in named]
        assert statuses == [200] * 60 + [429]


# Metrics ---------------------------------------------------------------------------------------

ROOT = Path(__file__).resolve().parents[2]
LINE = re.compile(r'([a-z_]+)(?:\{((?:[a-z0-9_]+="(?:[^"\\\n]|\\["\\n])*",?)*)\})? ([0-9.e+-]+)')


def parse(text: str) -> dict[tuple[str, str], float]:
    """Metrics by name and labels; every line is checked."""
    found: dict[tuple[str, str], float] = {}
    typed: set[str] = set()
    for line in text.removesuffix("\n").split("\n"):
        if line.startswith("# TYPE "):
            typed.add(line.split()[2])
        if line.startswith("#"):
            continue
        match = LINE.fullmatch(line)
        assert match, line
        assert {match[1], re.sub("_(bucket|sum|count)$", "", match[1])} & typed, line
        labels = sorted((match[2] or "").split('",'))  # the bucket's comes first, see below
        key = ",".join(f'{label.removesuffix(chr(34))}"' for label in labels if label)
        assert (match[1], key) not in found, line
        found[match[1], key] = float(match[3])
    return found


def test_requests_are_counted_by_route(client: FlaskClient, position: dict[str, Any]) -> None:
    for _ in range(3):
        client.post("/v1/suggest", json={"position": position})
    client.post("/v1/suggest", json={})
    client.get("/v1/games/secret-id-1")
    client.get("/v1/games/secret-id-2")
    client.get('/no"where\n')
    client.post("/v1/games", json={"agents": ["greedy"]})
    client.post("/v1/matches")
    response = client.get("/metrics")
    assert response.content_type.startswith("text/plain; version=")
    assert "secret" not in response.text
    found = parse(response.text)

    def requests(route: str, status: int) -> float:
        return found.get(("skipbo_requests_total", f'route="{route}",status="{status}"'), 0)

    assert requests("/v1/suggest", 200) == 3
    assert requests("/v1/suggest", 422) == 1
    assert requests("/v1/games/<game_id>", 404) == 2
    assert requests("none", 404) == 1
    label = 'route="/v1/suggest"'
    assert found["skipbo_request_seconds_count", label] == 4
    assert found["skipbo_request_seconds_bucket", f'le="+Inf",{label}'] == 4
    buckets = [found["skipbo_request_seconds_bucket", f'le="{b}",{label}'] for b in BUCKETS]
    assert buckets == sorted(buckets)
    assert found["skipbo_request_seconds_sum", label] > 0
    assert found["skipbo_agent_seconds_count", 'method="turn"'] >= 3
    assert found["skipbo_open_games", ""] == found["skipbo_open_matches", ""] == 1
    assert found["skipbo_model_info", f'name="turn:fake",sha256="{"0" * 64}"'] == 1


def test_values_fall_into_their_buckets() -> None:
    metrics = Metrics()
    for seconds in (0.0005, 0.001, 0.0011, 3.0, 60.0):
        metrics.request('a"\\\n', 200, seconds)
    found = parse(metrics.text([]).decode())
    label = r'route="a\"\\\n"'
    told = {
        bound: found["skipbo_request_seconds_bucket", f'le="{bound}",{label}']
        for bound in (*BUCKETS, "+Inf")
    }
    assert told[0.001] == 2
    assert told[0.0025] == told[2.5] == 3
    assert told[5.0] == told[10.0] == 4
    assert told["+Inf"] == 5
    assert found["skipbo_request_seconds_sum", label] == pytest.approx(63.0026)


COUNTER = """
import sys
from serve.metrics import Metrics
metrics = Metrics()
for _ in range(int(sys.argv[1])):
    metrics.request("/x", 200, 0.02)
metrics.agent("turn", 0.5)
sys.stdout.write(metrics.text([("skipbo_open_games", "Games.", [({}, 4)])]).decode())
"""


def test_several_processes_add_up(tmp_path: Path) -> None:
    """Those that have ended too; what is measured now is told once."""
    environment = {**os.environ, METRICS_VARIABLE: str(tmp_path)}
    for count, total in ((2, 2), (3, 5), (1, 6)):
        done = subprocess.run(
            [sys.executable, "-c", COUNTER, str(count)],
            env=environment,
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=True,
        )
        found = parse(done.stdout)
        assert found["skipbo_requests_total", 'route="/x",status="200"'] == total
        assert found["skipbo_request_seconds_count", 'route="/x"'] == total
        assert found["skipbo_open_games", ""] == 4
    assert found["skipbo_agent_seconds_sum", 'method="turn"'] == 1.5


def test_counting_is_safe_with_threads() -> None:
    metrics = Metrics()

    def count() -> None:
        for _ in range(500):
            metrics.request("/x", 200, 0.01)

    threads = [threading.Thread(target=count) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (
        parse(metrics.text([]).decode())["skipbo_requests_total", 'route="/x",status="200"'] == 3000
    )


def test_metrics_do_without_the_database(fakes: None, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no folder")
    app = create_app(testing=True, database_url=f"sqlite:///{tmp_path}/file/games.db")
    found = parse(app.test_client().get("/metrics").text)
    assert ("skipbo_open_games", "") not in found


# The page of all calls -------------------------------------------------------------------------


class Page(HTMLParser):
    """Collects ids and links, and that all tags are closed."""

    VOID = ("meta", "br", "hr", "input", "img")

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.ids: list[str] = []
        self.links: list[str] = []
        self.tags: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        if tag not in self.VOID:
            self.open.append(tag)
        for name, value in attrs:
            if name == "id":
                self.ids.append(str(value))
            if name in ("href", "src"):
                self.links.append(str(value))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_the_page_shows_every_call(client: FlaskClient) -> None:
    response = client.get("/docs")
    assert response.status_code == 200
    assert response.mimetype == "text/html"
    read = Page()
    read.feed(response.text)
    assert read.open == []
    assert len(set(read.ids)) == len(read.ids)
    for op in OPERATIONS:
        assert f"call-{op.function.__name__}" in read.ids
    for name in document()["components"]["schemas"]:
        assert f"object-{name}" in read.ids
    for link in read.links:
        assert link == "/v1/openapi.json" or link.removeprefix("#") in read.ids, link
    assert not read.tags & {"script", "link", "img", "iframe"}
    policy = response.headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert " style=" not in response.text


def test_the_page_escapes_what_it_shows(client: FlaskClient) -> None:
    made = document()
    made["info"]["description"] = "<script>alert(1)</script>"
    made["components"]["schemas"]["Move"]["description"] = '"><img>'
    text = page(made)
    assert "<script>" not in text
    assert "<img>" not in text


def test_every_problem_of_an_operation_is_a_kind(app: Flask) -> None:
    for op in OPERATIONS:
        assert set(op.problems) <= set(KINDS)
        assert op.status in (200, 201)


# What it says of itself ------------------------------------------------------------------------


def test_a_service_without_models_starts_and_says_so(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, position: dict[str, Any]
) -> None:
    monkeypatch.setattr("skipbo_env.agents.models.model_directories", lambda models_dir=None: [])
    client = create_app(models_dir=tmp_path / "nowhere", testing=True).test_client()
    ready = client.get("/readyz")
    assert ready.status_code == 200
    assert ready.get_json()["models"] == []
    assert any("no model" in warning for warning in ready.get_json()["warnings"])
    answer = client.post("/v1/suggest", json={"position": position})
    assert answer.get_json()["agent"]["name"] == "greedy"
    assert client.post("/v1/games", json={}).status_code == 201


def test_models_are_told_and_damaged_ones_too(fakes: None, monkeypatch: pytest.MonkeyPatch) -> None:
    bad = {"name": "hurt", "method": "turn", "model": "hurt", "error": "/secret/hurt: cut off"}
    monkeypatch.setattr(agents, "list_agents", lambda models_dir=None: [*LISTED, bad])
    ready = create_app(testing=True).test_client().get("/readyz")
    assert ready.get_json()["models"] == ["fake"]
    assert ["hurt" in warning for warning in ready.get_json()["warnings"]] == [True]
    assert "secret" not in ready.text


HOSTILE = [
    b"[" * 2000,
    b'{"rules":' + b'{"a":' * 150 + b"1" + b"}" * 151,
    b'{"record":' + b'{"a":' * 150 + b"1" + b"}" * 151,
    b'{"seed":' + b"9" * 5000 + b"}",
    b'{"ply":NaN,"action":1}',
    b'{"ply":1e999,"action":1}',
    b"\xff",
    b"null",
    b"[]",
    b"",
    b'{"format":"skipbo-record","version":1,"rules":{},"first_player":0,"events":[1e999],'
    b'"deal":{"stocks":[[1]],"draw":NaN}}',
    b'{"format":"x","rules":5}',
    b'{"rules":{"stock_size":' + b"9" * 4000 + b"}}",
    b'{"rules":{"players":NaN}}',
    b'{"rules":{"stalemate":"\\ud800"}}',
    b'{"agents":["\\u0000"]}',
    b'{"winner":0,"left":[0,' + b"9" * 4000 + b"]}",
]


def test_no_body_makes_a_500(client: FlaskClient) -> None:
    known = {
        "game_id": client.post("/v1/games", json={}).get_json()["id"],
        "match_id": client.post("/v1/matches").get_json()["id"],
    }
    for op in OPERATIONS:
        if op.body is None:
            continue
        for data in HOSTILE:
            path = op.template.format(**known)
            response = client.post(path, data=data, content_type="application/json")
            assert response.status_code < 500, (path, data[:60])
            if response.status_code >= 400:
                assert response.mimetype == "application/problem+json"
