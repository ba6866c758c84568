"""The service on both its servers, driven by the project's own load and fault commands."""

from __future__ import annotations

import json
import signal
import socket
import sys
import threading
import time
from collections.abc import Iterator

import pytest

from serve.load import (
    Client,
    Service,
    check_health,
    check_rates,
    check_readers,
    check_soak,
    check_stalled,
    positions,
    request,
    running,
)
from skipbo_env.agents import make_agent
from skipbo_env.game import Game
from tests.serve.test_operating import parse

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
WORKERS = 2


@pytest.fixture(scope="module", params=["waitress", "gunicorn"])
def service(request: pytest.FixtureRequest) -> Iterator[Service]:
    with running(request.param, workers=WORKERS) as started:
        yield started


def ask(service: Service, data: bytes) -> tuple[int, bytes]:
    """One request on a connection of its own, so that any process may get it."""
    with Client(service.port) as client:
        return client.send(data)


def test_positions_are_fixed_and_can_be_asked_about() -> None:
    assert positions(20) == positions(20)
    assert len({json.dumps(position) for position in positions()}) == 200


def test_processes_count_together(service: Service) -> None:
    """Whichever process is asked tells what all have counted."""
    key = ("skipbo_requests_total", 'route="/problems/<kind>",status="200"')
    for _ in range(20):
        assert ask(service, request("GET", "/problems/busy"))[0] == 200
    for _ in range(6):
        found = parse(ask(service, request("GET", "/metrics"))[1].decode())
        assert found[key] == 20
    children = len(service._pids()) - 1
    assert children in (0, WORKERS)


def test_what_the_server_itself_refuses_is_a_problem(service: Service) -> None:
    for head, status in (
        (b"GET /a b c HTTP/1.1\r\n\r\n", 400),
        (b"NONSENSE\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nHost: x\r\nContent-Length: -5\r\n\r\n", 400),
    ):
        with socket.create_connection(("127.0.0.1", service.port), timeout=20) as connection:
            connection.sendall(head)
            answer = connection.makefile("rb").read()
        told, _, body = answer.partition(b"\r\n\r\n")
        assert int(told.split()[1]) == status
        assert b"application/problem+json" in told
        assert json.loads(body)["status"] == status
    # Nothing else is let in either: a name that is not the loopback's.
    status, body = ask(service, b"GET /v1/rules HTTP/1.1\r\nHost: evil.example\r\n\r\n")
    assert (status, json.loads(body)["type"]) == (400, "/problems/untrusted-host")


def test_a_body_that_breaks_off_or_cannot_be_read_changes_nothing(service: Service) -> None:
    head = (
        f"POST /v1/matches HTTP/1.1\r\nHost: 127.0.0.1:{service.port}\r\n"
        "Content-Type: application/json\r\n"
    ).encode()
    chunked = head + b"Transfer-Encoding: chunked\r\n\r\n"
    for data in (
        chunked + b"zz\r\n{}\r\n0\r\n\r\n",
        chunked + b"2\r\n{}x\r\n0\r\n\r\n",
        chunked + b"-2\r\n{}\r\n0\r\n\r\n",
        chunked + b"2\r\n{}\r\n",
        head + b"Content-Length: 100\r\n\r\n{}",
    ):
        with socket.create_connection(("127.0.0.1", service.port), timeout=20) as connection:
            connection.sendall(data)
            connection.shutdown(socket.SHUT_WR)
            answer = connection.makefile("rb").read()
        if answer:  # waitress closes where nothing more can come
            told, _, body = answer.partition(b"\r\n\r\n")
            assert int(told.split()[1]) == 400, data
            assert json.loads(body)["type"] == "/problems/bad-request"


def test_suggestions_under_load_have_no_errors(service: Service) -> None:
    rates = check_rates(service, clients=2, rounds=1)
    assert rates["errors"] == 0
    assert rates["turn_share"] > 0
    soak = check_soak(service, clients=16, seconds=2.0)
    assert soak["errors"] == 0
    assert soak["requests"] > 0


def test_health_is_told_while_costly_work_is_done(service: Service) -> None:
    found = check_health(service, clients=8, seconds=2.0)
    assert found["errors"] == 0
    assert found["statuses"].get("503", 0) > 0  # more than the places for it
    assert found["healthz"] > 0


def test_clients_that_misbehave_keep_nobody_waiting(service: Service) -> None:
    for check in (check_stalled, check_readers):
        found = check(service, 16)
        assert found["answered"] == found["of"]
        assert found["files_left"] <= 0


@pytest.mark.parametrize("server", ["waitress", "gunicorn"])
def test_a_running_request_is_finished_after_sigterm(server: str) -> None:
    game, greedy = Game(seed=1), make_agent("greedy")
    while not game.over:
        game.apply(greedy.act(game))
    review = request("POST", "/v1/analysis", {"record": game.record()})
    with running(server, workers=WORKERS) as service:
        with Client(service.port) as client:
            answers: list[int] = []
            asking = threading.Thread(target=lambda: answers.append(client.send(review)[0]))
            asking.start()
            time.sleep(0.5)  # of the seconds that it takes
            service.process.send_signal(signal.SIGTERM)
            asking.join(30)
        assert answers == [200]
        assert service.process.wait(30) == 0
