"""`python -m serve.load`: how much the service takes, and how it stands clients that misbehave.

It starts the service on a free loopback port, with an empty Flask endpoint beside it, and asks over
200 fixed positions from games:

    rates     suggestions a second, as a share of the empty endpoint's requests on the same server
    soak      many clients at once for a while: errors, and how much memory grows
    health    how long /healthz takes at most while costly work saturates the service
    stalled   clients that send half a body and stop: is everybody else still answered
    readers   clients that ask for much and read nothing: likewise

Exit code 1 says that a bound was missed. Nothing but the loopback is used, and all of it ends.
"""

from __future__ import annotations

import contextlib
import json as jsonlib
import os
import re
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from multiprocessing import get_context
from pathlib import Path
from typing import Any, Literal, get_args

from flask import Flask
from rich.console import Console
from rich.table import Table
from werkzeug.middleware.dispatcher import DispatcherMiddleware

from serve.settings import METRICS_VARIABLE, Settings
from serve.wsgi import make_app
from skipbo_env.agents import make_agent
from skipbo_env.game import Game

POSITIONS = 200
BOUNDS = {"turn": 0.25, "policy": 0.4}  # shares of the empty endpoint's rate, at least
MAX_GROWTH_MB = 10.0
MAX_HEALTH_MS = 100.0
Check = Literal["rates", "soak", "health", "stalled", "readers"]
CHECKS: tuple[Check, ...] = get_args(Check)
_EMPTY = "/empty/"
_PATIENCE_S = 30.0  # an answer that takes longer is none


# The service under test ------------------------------------------------------------------------


def _under_test() -> Any:
    """The service as it is run, with a bare Flask application beside it."""
    bare = Flask("empty", static_folder=None)
    bare.add_url_rule("/", "empty", lambda: "")
    return DispatcherMiddleware(make_app(Settings()), {_EMPTY.rstrip("/"): bare})


def __getattr__(name: str) -> Any:
    if name == "app":  # what gunicorn's workers import
        globals()[name] = _under_test()
        return globals()[name]
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def _serve_here() -> None:
    """Serve with waitress until SIGTERM; the first line of output has the address."""
    from serve.server import Server

    settings = Settings()
    server = Server(_under_test(), settings.host, settings.port, settings.handlers)
    print(server.url, flush=True)
    server.run()


@dataclass
class Service:
    """A running service: its port, and the processes that it has."""

    port: int
    process: subprocess.Popen[str]

    def memory_mb(self) -> float:
        """Resident memory of all its processes; shared pages count in each."""
        page = os.sysconf("SC_PAGE_SIZE")
        return sum(int(_proc(pid, "statm").split()[1]) for pid in self._pids()) * page / 1e6

    def files(self) -> int:
        """Open files and sockets of all its processes."""
        return sum(len(os.listdir(f"/proc/{pid}/fd")) for pid in self._pids())

    def _pids(self) -> list[int]:
        pid = self.process.pid
        children = _proc(pid, f"task/{pid}/children").split()
        return [pid, *map(int, children)]


def _proc(pid: int, name: str) -> str:
    return Path(f"/proc/{pid}/{name}").read_text(encoding="ascii")


@contextlib.contextmanager
def running(server: str, workers: int) -> Iterator[Service]:
    """The service with one of its two servers, ready to answer, for the time of a block.

    Raises:
        ValueError: it does not start.
    """
    with socket.socket() as probe:  # gunicorn does not tell which port it has taken
        probe.bind(("127.0.0.1", 0))
        port = int(probe.getsockname()[1])
    with tempfile.TemporaryDirectory() as folder:
        environment = dict(os.environ)
        environment.pop(METRICS_VARIABLE, None)
        Settings(
            host="127.0.0.1",
            port=port,
            workers=workers if server == "gunicorn" else 1,
            database_url=f"sqlite:///{folder}/games.db",
        ).export(environment)
        command = [sys.executable, "-c", "from serve.load import _serve_here; _serve_here()"]
        if server == "gunicorn":
            command = [*_GUNICORN, "serve.load:app"]
        process = subprocess.Popen(  # noqa: S603 - this program again
            command, env=environment, stdout=subprocess.DEVNULL, text=True
        )
        try:
            _wait_until_ready(port, process, workers if server == "gunicorn" else 1)
            yield Service(port, process)
        finally:
            process.terminate()
            process.wait(_PATIENCE_S)


_GUNICORN = (sys.executable, "-m", "gunicorn", "-c", "python:serve.workers")


def _wait_until_ready(port: int, process: subprocess.Popen[str], workers: int) -> None:
    """Every process of the service has to be warm; which of them answers is chance."""
    started = time.monotonic()
    in_a_row = 0
    while in_a_row < 8 * workers:
        if process.poll() is not None or time.monotonic() - started > 600:
            raise ValueError("the service does not start")
        try:
            with Client(port) as client:
                in_a_row = in_a_row + 1 if client.get("/readyz")[0] == 200 else 0
        except OSError:
            in_a_row = 0
        if in_a_row == 0:
            time.sleep(0.2)


# Clients ---------------------------------------------------------------------------------------


class Client:
    """One connection that is kept; it costs the machine as little as a client can.

    Attributes:
        wait_s: the Retry-After of the last answer; 0 without one.
    """

    def __init__(self, port: int) -> None:
        self.wait_s = 0
        self._socket = socket.create_connection(("127.0.0.1", port), timeout=_PATIENCE_S)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._file = self._socket.makefile("rb")

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *error: object) -> None:
        self._file.close()
        self._socket.close()

    def get(self, path: str) -> tuple[int, bytes]:
        """The status and the body of an answer."""
        return self.send(request("GET", path))

    def send(self, data: bytes) -> tuple[int, bytes]:
        """Send a whole request, and read its answer."""
        self._socket.sendall(data)
        status = int(self._file.readline().split()[1])
        length = self.wait_s = 0
        while (line := self._file.readline()) not in (b"\r\n", b""):
            name, _, value = line.partition(b":")
            if name.lower() == b"content-length":
                length = int(value)
            elif name.lower() == b"retry-after":
                self.wait_s = int(value)
        return status, self._file.read(length)


def request(method: str, path: str, body: Mapping[str, Any] | None = None) -> bytes:
    """A request as bytes."""
    data = b"" if body is None else jsonlib.dumps(body).encode()
    lines = [f"{method} {path} HTTP/1.1", "Host: 127.0.0.1"]
    if body is not None:
        lines += ["Content-Type: application/json", f"Content-Length: {len(data)}"]
    return "\r\n".join([*lines, "", ""]).encode() + data


@dataclass
class Tally:
    """What clients that ran together have seen."""

    statuses: dict[int, int] = field(default_factory=dict)
    faults: list[str] = field(default_factory=list)
    slowest_s: float = 0.0
    seconds: float = 0.0

    @property
    def answers(self) -> int:
        """Requests that were answered."""
        return sum(self.statuses.values())

    def errors(self, allowed: Sequence[int] = (200,)) -> int:
        """Requests without an answer, or with another status than these."""
        bad = sum(n for status, n in self.statuses.items() if status not in allowed)
        return bad + len(self.faults)


def together(
    port: int, clients: int, requests: Sequence[bytes], *, seconds: float | None = None
) -> Tally:
    """Let clients ask at once, each in turn: all the requests once, or over and over for a time.
    Who is told to come again later waits so long.
    """
    tally = Tally()
    lock = threading.Lock()
    started = time.monotonic()
    stop = None if seconds is None else started + seconds

    def work(first: int) -> None:
        statuses: dict[int, int] = {}
        slowest, place = 0.0, first
        try:
            with Client(port) as client:
                while place < len(requests) if stop is None else time.monotonic() < stop:
                    before = time.monotonic()
                    status, _ = client.send(requests[place % len(requests)])
                    slowest = max(slowest, time.monotonic() - before)
                    statuses[status] = statuses.get(status, 0) + 1
                    place += clients
                    time.sleep(client.wait_s)
        except (OSError, ValueError, IndexError) as error:
            tally.faults.append(f"{type(error).__name__}: {error}")
        with lock:
            tally.slowest_s = max(tally.slowest_s, slowest)
            for status, count in statuses.items():
                tally.statuses[status] = tally.statuses.get(status, 0) + count

    threads = [threading.Thread(target=work, args=(k,)) for k in range(clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    tally.seconds = time.monotonic() - started
    return tally


def positions(count: int = POSITIONS) -> list[dict[str, Any]]:
    """Positions with a choice from games of the rule-based agents, the same ones every time."""
    found: list[dict[str, Any]] = []
    greedy, seed = make_agent("greedy"), 0
    while len(found) < count:
        game = Game(seed=seed)
        for ply in range(400):
            if game.over:
                break
            if ply % 9 == 4 and len(game.legal_actions()) > 1:
                found.append(game.position())
            game.apply(greedy.act(game))
        seed += 1
    return found[:count]


# The checks ------------------------------------------------------------------------------------


def _suggestions(agent: str | None) -> list[bytes]:
    named = {} if agent is None else {"agent": agent}
    return [request("POST", "/v1/suggest", {"position": p, **named}) for p in positions()]


def _agent_by(service: Service, method: str) -> str | None:
    """The first agent of a method that plays at the positions' table, of two."""
    with Client(service.port) as client:
        listed = jsonlib.loads(client.get("/v1/agents")[1])["agents"]
    return next((a["name"] for a in listed if (a["method"], a["players"]) == (method, 2)), None)


def check_rates(service: Service, clients: int, rounds: int) -> dict[str, Any]:
    """Suggestions a second beside the empty endpoint's requests, in turns, medians of rounds."""
    policy = _agent_by(service, "policy")
    asked = {"empty": [request("GET", _EMPTY)] * 600, "turn": _suggestions(None)}
    if policy is not None:
        asked["policy"] = _suggestions(policy)
    rates: dict[str, list[float]] = {name: [] for name in asked}
    errors = 0
    for place in range(rounds + 1):
        for name, requests in asked.items():
            tally = together(service.port, clients, requests)
            errors += tally.errors()
            if place:  # the first one warms up
                rates[name].append(tally.answers / tally.seconds)
    found: dict[str, Any] = {
        "requests_per_s": {name: round(statistics.median(each)) for name, each in rates.items()},
        "errors": errors,
        "ok": errors == 0,
    }
    for name, bound in BOUNDS.items():
        if name not in rates:
            found[f"{name}_share"] = None
            continue
        each = [rate / empty for rate, empty in zip(rates[name], rates["empty"], strict=True)]
        share = statistics.median(each)
        found[f"{name}_share"] = round(share, 3)
        found["ok"] &= share >= bound
    return found


def check_soak(service: Service, clients: int, seconds: float) -> dict[str, Any]:
    """Suggestions by many clients at once: errors, and growth of memory after a warm-up."""
    requests = _suggestions(None)
    together(service.port, clients, requests)
    before = service.memory_mb()
    tally = together(service.port, clients, requests, seconds=seconds)
    growth = service.memory_mb() - before
    return {
        "clients": clients,
        "seconds": round(tally.seconds, 1),
        "requests": tally.answers,
        "errors": tally.errors(),
        "slowest_ms": round(1000 * tally.slowest_s, 1),
        "memory_mb": round(before, 1),
        "growth_mb": round(growth, 1),
        "ok": tally.errors() == 0 and growth < MAX_GROWTH_MB,
    }


def check_health(service: Service, clients: int, seconds: float) -> dict[str, Any]:
    """/healthz while costly work saturates the service: searches, or reviews where none is."""
    search = _agent_by(service, "search")
    if search is not None:
        options = {"agent": search, "budget_ms": 300}
        costly = [request("POST", "/v1/suggest", {"position": p, **options}) for p in positions(20)]
    else:
        game, greedy = Game(seed=1), make_agent("greedy")
        while not game.over:
            game.apply(greedy.act(game))
        costly = [request("POST", "/v1/analysis", {"record": game.record()})]
    # In a process of its own: here it would wait for the threads of the other clients.
    with ProcessPoolExecutor(1, get_context("spawn")) as apart:
        asked = apart.submit(health_times, service.port, seconds)
        done = together(service.port, clients, costly, seconds=seconds)
        times = asked.result()
    errors = done.errors((200, 202, 503))
    return {
        "by": search or "analysis",
        "clients": clients,
        "statuses": {str(status): n for status, n in sorted(done.statuses.items())},
        "errors": errors,
        "healthz": len(times),
        "median_ms": round(statistics.median(times), 1),
        "p95_ms": round(sorted(times)[int(0.95 * len(times))], 1),
        "slowest_ms": round(max(times), 1),
        "ok": errors == 0 and max(times) <= MAX_HEALTH_MS,
    }


def health_times(port: int, seconds: float) -> list[float]:
    """Milliseconds of each answer of /healthz, asked fifty times a second at most."""
    times: list[float] = []
    stop = time.monotonic() + seconds
    with Client(port) as client:
        while not times or time.monotonic() < stop:
            before = time.monotonic()
            client.get("/healthz")
            times.append(1000 * (time.monotonic() - before))
            time.sleep(0.02)
    return times


def check_stalled(service: Service, clients: int) -> dict[str, Any]:
    """Clients that send half a body and stop."""
    whole = _suggestions(None)[0]
    return _beside(service, clients, whole[: len(whole) - 40])


def check_readers(service: Service, clients: int) -> dict[str, Any]:
    """Clients that ask for 64 suggestions again and again and read none of them."""
    batch = {"positions": positions(64)}
    return _beside(service, clients, 8 * request("POST", "/v1/suggest/batch", batch))


def _beside(service: Service, clients: int, data: bytes) -> dict[str, Any]:
    """What others see while clients send this and then neither send nor read; what is left."""
    before = service.files()
    answered = 0
    slowest = 0.0
    suggestion = _suggestions(None)[0]
    with contextlib.ExitStack() as stack:
        for _ in range(clients):
            connection = stack.enter_context(socket.socket())
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            connection.connect(("127.0.0.1", service.port))
            connection.setblocking(False)
            with contextlib.suppress(BlockingIOError):
                connection.send(data)
        time.sleep(1.0)
        for _ in range(10):
            for wanted in (request("GET", "/healthz"), suggestion):
                started = time.monotonic()
                with contextlib.suppress(OSError, IndexError), Client(service.port) as client:
                    answered += client.send(wanted)[0] == 200
                slowest = max(slowest, time.monotonic() - started)
    left = _until_few(service.files, before)
    return {
        "clients": clients,
        "answered": answered,
        "of": 20,
        "slowest_ms": round(1000 * slowest, 1),
        "files_left": left - before,
        "ok": answered == 20 and left <= before,
    }


def _until_few(files: Callable[[], int], few: int) -> int:
    """Open files once those of closed connections are gone, or after a while."""
    started = time.monotonic()
    while (now := files()) > few and time.monotonic() - started < _PATIENCE_S:
        time.sleep(0.2)
    return now


def load(
    server: Literal["waitress", "gunicorn"] = "waitress",
    checks: tuple[Check, ...] = CHECKS,
    seconds: float = 30.0,
    clients: int = 16,
    rounds: int = 9,
    workers: int = 2,
    json: bool = False,
) -> int:
    """Measure the service on loopback, and how it stands clients that misbehave.

    Example: python -m serve.load --server gunicorn --checks rates soak

    Args:
        server: What serves it.
        checks: What to look at.
        seconds: How long the soak takes; the check of /healthz takes a third of it.
        clients: Clients at once; the rates are taken with a quarter of them.
        rounds: How often each rate is taken.
        workers: Processes of gunicorn's.
        json: One JSON object on standard output.
    """
    few = max(1, clients // 4)
    steps: dict[str, Callable[[Service], dict[str, Any]]] = {
        "rates": lambda service: check_rates(service, few, rounds),
        "soak": lambda service: check_soak(service, clients, seconds),
        "health": lambda service: check_health(service, clients, seconds / 3),
        "stalled": lambda service: check_stalled(service, clients),
        "readers": lambda service: check_readers(service, clients),
    }
    found: dict[str, Any] = {"server": server, "workers": workers if server == "gunicorn" else 1}
    with running(server, workers) as service:
        for name in checks:
            found[name] = steps[name](service)
    good = all(found[name]["ok"] for name in checks)
    if json:
        print(jsonlib.dumps(found))
    else:
        _show(found, checks)
    return 0 if good else 1


def _show(found: Mapping[str, Any], checks: Sequence[str]) -> None:
    table = Table("check", "within bounds", "found", title=f"{found['server']}")
    for name in checks:
        told = ", ".join(
            f"{key} {value}".replace("_", " ") for key, value in found[name].items() if key != "ok"
        )
        table.add_row(name, "yes" if found[name]["ok"] else "no", re.sub(r"[{}']", "", told))
    Console().print(table)


if __name__ == "__main__":
    from skipbo_env.cli import run

    sys.exit(run(load, "load", sys.argv[1:]))
