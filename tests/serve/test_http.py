"""HTTP itself: hostile bodies, errors, headers, CORS, hosts, limits, the document, the process."""

from __future__ import annotations

import io
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from flask import Flask
from flask.testing import FlaskClient
from openapi_spec_validator import validate

from serve import create_app, limits
from serve.limits import Gate
from serve.openapi import document
from serve.operations import OPERATIONS, plain_to_json, to_json
from serve.problems import KINDS, Problem
from serve.server import page_url
from serve.service import Service
from serve.settings import Settings
from skipbo_env.suggestion import finite
from tests.serve.conftest import Slow

ROOT = Path(__file__).resolve().parents[2]
JSON = "application/json"
SECURITY = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}


def assert_problem(response: Any, status: int, kind: str) -> Any:
    assert response.status_code == status, response.text
    assert response.mimetype == "application/problem+json"
    problem = response.get_json()
    assert problem["type"] == f"/problems/{kind}"
    return problem


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (b'{"position":' + b"[" * 2000, "not-json"),
        (b"[" * 4000 + b"]" * 4000, "not-json"),
        (b'{"position":{"hand":[' + b"9" * 5000 + b"]}}", "not-json"),
        (b'{"position":{"hand":["\xff\xfe"]}}', "not-json"),
        (b'{"position":{"hand":["\\ud800"]}}', "not-json"),
        ("{}".encode("utf-16"), "not-json"),
        (b"\xef\xbb\xbf{}", "not-json"),
        (b'{"position"', "not-json"),
        (b"{'position': 1}", "not-json"),
        (b"", "not-json"),
        (b"NaN", "invalid-body"),
        (b"null", "invalid-body"),
        (b"[]", "invalid-body"),
        (b'"text"', "invalid-body"),
        (b'{"position":{},"top":NaN}', "invalid-body"),
        (b'{"position":{},"top":1e999}', "invalid-body"),
        (b'{"position":{"draw_size":NaN}}', "impossible-position"),
        (b'{"position":{"hand":[],"players":[1e999,-Infinity]}}', "impossible-position"),
        (b'{"position":' + b'{"a":' * 150 + b"1" + b"}" * 151, "impossible-position"),
        (b'{"position":{"hand":[' + b"9" * 4000 + b'],"players":[{},{}]}}', "impossible-position"),
    ],
    ids=range(20),
)
def test_hostile_bodies_are_refused(client: FlaskClient, data: bytes, kind: str) -> None:
    response = client.post("/v1/suggest", data=data, content_type=JSON)
    problem = assert_problem(response, KINDS[kind].status, kind)
    assert len(response.data) < 4000
    json.loads(response.text, parse_constant=lambda name: pytest.fail(name))
    assert "Traceback" not in problem["detail"]


@pytest.mark.parametrize(
    "headers",
    [
        {"Content-Type": "text/plain"},
        {"Content-Type": "application/x-www-form-urlencoded"},
        {"Content-Type": "application/json; charset=latin-1"},
        {"Content-Type": "application/problem+json"},
        {"Content-Type": JSON, "Content-Encoding": "gzip"},
        {},
    ],
)
def test_bodies_must_be_plain_json(client: FlaskClient, headers: dict[str, str]) -> None:
    response = client.post("/v1/suggest", data=b"{}", headers=headers)
    assert_problem(response, 415, "unsupported-media-type")


def test_utf_8_may_be_said(client: FlaskClient, position: dict[str, Any]) -> None:
    body = json.dumps({"position": position})
    response = client.post("/v1/suggest", data=body, content_type="application/json; charset=UTF-8")
    assert response.status_code == 200


@pytest.mark.parametrize(
    ("path", "limit"), [("/v1/suggest", limits.BODY), ("/v1/suggest/batch", limits.BATCH_BODY)]
)
@pytest.mark.parametrize("chunked", [False, True])
def test_one_byte_over_the_limit(client: FlaskClient, path: str, limit: int, chunked: bool) -> None:
    for size, status in ((limit, 400), (limit + 1, 413)):
        data = b"[" * 500 + b" " * (size - 500)
        if chunked:
            response = client.post(
                path,
                input_stream=io.BytesIO(data),
                headers={"Transfer-Encoding": "chunked"},
                environ_overrides={"wsgi.input_terminated": True},
                content_type=JSON,
            )
        else:
            response = client.post(path, data=data, content_type=JSON)
        assert_problem(response, status, "not-json" if status == 400 else "too-large")


def every_answer(client: FlaskClient, position: dict[str, Any]) -> list[Any]:
    return [
        *(client.get(op.path) for op in OPERATIONS if op.method == "GET"),
        client.get("/v1/openapi.json"),
        client.get("/problems/busy"),
        client.post("/v1/suggest", json={"position": position}),
        client.post("/v1/suggest/batch", json={"positions": [position]}),
        client.get("/v1/suggest"),
        client.delete("/v1/agents"),
        client.get("/nothing"),
        client.get("/", environ_overrides={"PATH_INFO": "//v1//agents"}),
        client.get("/docs"),
        client.get("/metrics"),
        client.post("/v1/games", json={}),
        client.post("/v1/matches"),
        client.post("/v1/games/x/undo"),
        client.post("/v1/analysis", json={}),
        client.get("/problems/nothing"),
        client.post("/v1/suggest", data=b"{", content_type=JSON),
        client.post("/v1/suggest", data=b"{}"),
        client.post("/v1/suggest", data=b" " * 70000, content_type=JSON),
        client.post("/v1/suggest", json={}),
        client.post("/v1/suggest", json={"position": position, "agent": "broken"}),
        client.options("/v1/suggest"),
        client.head("/healthz"),
    ]


def test_every_answer_has_the_headers(client: FlaskClient, position: dict[str, Any]) -> None:
    statuses = set()
    for response in every_answer(client, position):
        statuses.add(response.status_code)
        for name, value in SECURITY.items():
            assert response.headers[name] == value, response.request.path
        assert "frame-ancestors 'none'" in response.headers["Content-Security-Policy"]
        assert re.fullmatch("[A-Za-z0-9-]{1,64}", response.headers["X-Request-ID"])
        assert "Access-Control-Allow-Origin" not in response.headers
        if response.status_code >= 400:
            assert response.mimetype == "application/problem+json"
            assert response.get_json()["status"] == response.status_code
            assert response.get_json()["type"].removeprefix("/problems/") in KINDS
    assert statuses == {200, 201, 400, 404, 405, 413, 415, 422, 500}


def test_a_wrong_method_is_told_the_right_ones(client: FlaskClient) -> None:
    response = client.get("/v1/suggest")
    assert_problem(response, 405, "method-not-allowed")
    assert "POST" in response.headers["Allow"]


def test_a_fault_of_an_agent_is_a_500_that_tells_nothing(
    client: FlaskClient, position: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    response = client.post(
        "/v1/suggest",
        json={"position": position, "agent": "broken"},
        headers={"X-Request-ID": "find-me"},
    )
    problem = assert_problem(response, 500, "internal-error")
    assert "secret" not in response.text
    assert problem["request_id"] == "find-me"
    assert "find-me" in caplog.text
    assert "secret text" in caplog.text


@pytest.mark.parametrize("given", ["abc-123", "A" * 64])
def test_a_request_id_is_taken_over(client: FlaskClient, given: str) -> None:
    response = client.post("/v1/suggest", json={}, headers={"X-Request-ID": given})
    assert response.headers["X-Request-ID"] == response.get_json()["request_id"] == given


@pytest.mark.parametrize("given", ["", "A" * 65, "a b", "a;b", "ä", "<script>"])
def test_a_bad_request_id_is_replaced(client: FlaskClient, given: str) -> None:
    first, second = (client.get("/nothing", headers={"X-Request-ID": given}) for _ in range(2))
    assert first.headers["X-Request-ID"] != given
    assert first.headers["X-Request-ID"] != second.headers["X-Request-ID"]


def test_log_lines_are_json(client: FlaskClient, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "serve")
    client.get('/a%0Ab"c%00')
    line = json.loads(caplog.messages[-1])
    assert line["path"] == '/a\nb"c\x00'
    assert (line["status"], line["method"]) == (404, "GET")


@pytest.fixture
def open_client(fakes: None) -> FlaskClient:
    return create_app(
        testing=True, settings=Settings(cors_origin=("https://good.example",))
    ).test_client()


def test_cors_is_for_the_allow_list_and_for_errors_too(open_client: FlaskClient) -> None:
    for call in (
        lambda **kw: open_client.get("/healthz", **kw),
        lambda **kw: open_client.post("/v1/suggest", json={}, **kw),
        lambda **kw: open_client.get("/nothing", **kw),
        lambda **kw: open_client.get("/v1/suggest", **kw),
    ):
        response = call(headers={"Origin": "https://good.example"})
        assert response.headers["Access-Control-Allow-Origin"] == "https://good.example"
        assert "Access-Control-Allow-Credentials" not in response.headers
        assert "Origin" in response.headers["Vary"]
        for origin in ("https://evil.example", "null", "https://good.example.evil"):
            response = call(headers={"Origin": origin})
            assert "Access-Control-Allow-Origin" not in response.headers
            assert "Origin" in response.headers["Vary"]


def test_preflights_are_answered(open_client: FlaskClient) -> None:
    headers = {
        "Origin": "https://good.example",
        "Access-Control-Request-Method": "POST",
        "Access-Control-Request-Headers": "content-type",
    }
    response = open_client.options("/v1/suggest", headers=headers)
    assert response.status_code == 200
    assert "POST" in response.headers["Access-Control-Allow-Methods"]
    assert "Content-Type" in response.headers["Access-Control-Allow-Headers"]
    headers["Origin"] = "https://evil.example"
    response = open_client.options("/v1/suggest", headers=headers)
    assert not [name for name, _ in response.headers if name.startswith("Access-Control")]


def test_other_hosts_are_refused(fakes: None) -> None:
    names = ("localhost", "127.0.0.1", "::1", "Skipbo.Example.org", ".below.example")
    client = create_app(testing=True, settings=Settings(trusted_host=names)).test_client()
    for host in (
        "localhost:8000",
        "LOCALHOST",
        "[::1]:8000",
        "[::1]",
        "skipbo.example.org:443",
        "SKIPBO.example.org.",
        "deep.below.example",
        "below.example",
    ):
        assert client.get("/v1/rules", headers={"Host": host}).status_code == 200, host
    for host in (
        "evil.example",
        "localhost.evil.example",
        "127.0.0.1.evil",
        "a b",
        "",
        "[::2]",
        "notbelow.example",
        "example.org",
        "localhost:80:80",
        "evil.example:localhost",
    ):
        # A container's check of its health asks by address.
        assert client.get("/healthz", headers={"Host": host}).status_code == 200
        response = client.get("/v1/rules", headers={"Host": host})
        assert_problem(response, 400, "untrusted-host")
        assert response.headers["X-Content-Type-Options"] == "nosniff"
        assert response.headers["X-Request-ID"]


def test_costly_searches_are_capped(app: Flask, position: dict[str, Any]) -> None:
    """One search runs, one waits: a third gets 503 at once, while all else is answered."""
    state: Service = app.extensions["skipbo"]
    state.gate = Gate(slots=1, queue=1, wait_s=20)
    Slow.go.clear()
    while Slow.started.acquire(blocking=False):  # the warm-up's
        pass
    done: list[int] = []
    body = {"position": position, "agent": "search:fake", "budget_ms": 100}

    def ask() -> None:
        done.append(app.test_client().post("/v1/suggest", json=body).status_code)

    threads = [threading.Thread(target=ask) for _ in range(2)]
    try:
        threads[0].start()
        assert Slow.started.acquire(timeout=20)
        threads[1].start()
        while state.gate._waiting < 1:
            time.sleep(0.01)
        client = app.test_client()
        response = client.post("/v1/suggest", json=body)
        assert_problem(response, 503, "busy")
        assert int(response.headers["Retry-After"]) >= 1
        batch = client.post(
            "/v1/suggest/batch", json={"positions": [position], "agent": "search:fake"}
        )
        assert batch.status_code == 503
        assert client.get("/healthz").status_code == 200
        assert client.post("/v1/suggest", json={"position": position}).status_code == 200
    finally:
        Slow.go.set()
        for thread in threads:
            thread.join(20)
    assert done == [200, 200]


def test_the_gate_gives_up_and_is_left_open_by_errors() -> None:
    gate = Gate(slots=1, queue=1, wait_s=0.01)
    for _ in range(3):
        with pytest.raises(RuntimeError), gate.enter():
            raise RuntimeError
    with gate.enter(), pytest.raises(Problem, match="busy"), gate.enter():
        pass
    with gate.enter():
        pass


def test_not_ready_until_warm(fakes: None, monkeypatch: pytest.MonkeyPatch) -> None:
    app = create_app(testing=True)
    app.extensions["skipbo"].ready.clear()
    client = app.test_client()
    response = client.get("/readyz")
    assert_problem(response, 503, "not-ready")
    assert response.headers["Retry-After"]
    assert client.get("/healthz").get_json() == {"status": "ok"}


def test_an_agent_that_cannot_be_warmed_leaves_the_service_unready(
    fakes: None, caplog: pytest.LogCaptureFixture
) -> None:
    client = create_app(agent="broken", testing=True).test_client()
    assert client.get("/readyz").status_code == 503
    assert client.get("/healthz").status_code == 200
    assert "warming up broken failed" in caplog.text


def test_the_document_is_valid_and_current(client: FlaskClient) -> None:
    made = document()
    validate(made)
    assert client.get("/v1/openapi.json").get_json() == made
    committed = json.loads((ROOT / "docs" / "openapi.json").read_text(encoding="utf-8"))
    assert committed == made, "write it anew: python -m serve.openapi docs/openapi.json"


def test_every_problem_is_described(client: FlaskClient) -> None:
    for kind in KINDS:
        assert client.get(f"/problems/{kind}").get_json()["type"] == f"/problems/{kind}"
    for op in OPERATIONS:
        assert set(op.problems) <= set(KINDS)


def test_no_torch_is_imported(position: dict[str, Any]) -> None:
    code = (
        "import sys, serve, serve.cli\n"
        "client = serve.create_app(agent='greedy', testing=True).test_client()\n"
        f"print(client.post('/v1/suggest', json={{'position': {position!r}}}).status_code)\n"
        "print([name for name in ('torch', 'training', 'jax') if name in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout.split("\n")[:2] == ["200", "[]"]


def test_plain_json_is_the_same_text() -> None:
    """Numbers, numpy's too, escapes, and what JSON does not have."""
    data = {
        "a": [1, 0.5, 1e-7, 123456.789, True, None, '\u2028 \u00e9 " \\'],
        "b": (np.int64(5), np.float64(0.25), np.bool_(True), np.arange(2)),
    }
    text = plain_to_json(data)
    assert text.isascii()
    assert json.loads(text) == json.loads(to_json(data))
    assert plain_to_json({"a": [0.25, "x"]}) == to_json({"a": [0.25, "x"]})
    assert plain_to_json({"a": "NaN"}) == '{"a":"NaN"}'
    for bad in (float("nan"), float("inf"), np.float64("-inf")):
        with pytest.raises(ValueError, match="JSON compliant"):
            plain_to_json({"a": bad})
    with pytest.raises(TypeError, match="object is not JSON"):
        plain_to_json({"a": object()})


def test_json_is_plain() -> None:
    odd = {"a": np.int64(5), "b": np.float32(0.5), "c": np.array([1, 2]), "d": Decimal("2.5")}
    assert to_json(odd) == '{"a":5,"b":0.5,"c":[1,2],"d":2.5}'
    assert finite(np.float64("nan")) is finite(float("-inf")) is finite(None) is None
    for bad in (float("nan"), Decimal("inf")):
        with pytest.raises(ValueError, match="JSON"):
            to_json({"a": bad})


def get(url: str) -> tuple[int, Any]:
    try:
        with urllib.request.urlopen(url, timeout=10) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        return error.code, json.load(error)


SERVER = """
import sys, threading, time
sys.path.insert(0, {root!r})
import skipbo_env
from skipbo_env import agents
from tests.serve import conftest

class Sleepy(conftest.Ranker):
    def suggest(self, game, **keywords):
        print("asked", flush=True)
        time.sleep(1.0)
        return super().suggest(game, **keywords)

conftest.CLASSES["turn:fake"] = Sleepy
agents.list_agents = lambda models_dir=None: conftest.LISTED
skipbo_env.make_agent = conftest.fake_agent
from serve.cli import run
from serve.settings import Settings
sys.exit(run(Settings(port=0, agent="greedy", database_url="sqlite://")))
"""


def test_the_server_answers_and_stops_gently(position: dict[str, Any]) -> None:
    """A line tells the address; after SIGTERM the running request is answered, exit code 0."""
    server = subprocess.Popen(
        [sys.executable, "-c", SERVER.format(root=str(ROOT))],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )
    with server:
        try:
            check_server(server, position)
        finally:
            server.kill()


def test_the_address_that_is_told_can_be_opened() -> None:
    assert page_url("127.0.0.1", 8000) == "http://127.0.0.1:8000"
    assert page_url("0.0.0.0", 8000) == "http://127.0.0.1:8000"
    assert page_url("::", 80) == "http://[::1]:80"
    assert page_url("skipbo.example.org", 80) == "http://skipbo.example.org:80"


def check_refused_early(port: int) -> None:
    """What waitress itself refuses is a problem too."""
    for head, kind in (
        (b"POST /v1/suggest HTTP/1.1\r\nContent-Length: 99999999\r\n\r\n", "too-large"),
        (b"GET /a b c HTTP/1.1\r\n\r\n", "bad-request"),
    ):
        with socket.create_connection(("127.0.0.1", port), timeout=10) as connection:
            connection.sendall(head)
            answer = connection.makefile("rb").read()
        assert b"application/problem+json" in answer
        assert json.loads(answer.split(b"\r\n\r\n", 1)[1])["type"] == f"/problems/{kind}"


def check_server(server: subprocess.Popen[str], position: dict[str, Any]) -> None:
    assert server.stdout is not None
    told = []
    for line in server.stdout:
        told.append(line)
        if "http" in line:
            break
    found = re.search(r"http://127\.0\.0\.1:\d+", told[-1])
    assert found, told
    url = found[0]
    assert get(f"{url}/readyz")[1]["status"] == "ready"
    assert get(f"{url}/nothing")[0] == 404
    check_refused_early(int(url.rsplit(":", 1)[1]))
    evil = urllib.request.Request(f"{url}/v1/rules", headers={"Host": "evil.example"})
    with pytest.raises(urllib.error.HTTPError, match="400"):
        urllib.request.urlopen(evil, timeout=10)
    body = json.dumps({"position": position, "agent": "turn:fake"}).encode()
    answers: list[int] = []

    def ask() -> None:
        request = urllib.request.Request(
            f"{url}/v1/suggest", data=body, headers={"Content-Type": JSON}
        )
        with urllib.request.urlopen(request, timeout=20) as answer:
            json.load(answer)
            answers.append(answer.status)

    asking = threading.Thread(target=ask)
    asking.start()
    assert server.stdout.readline().strip() == "asked"
    server.send_signal(signal.SIGTERM)
    asking.join(20)
    assert server.wait(20) == 0
    assert answers == [200]
