"""What one client may ask for: sizes, counts and times, and the gate before costly searches."""

from __future__ import annotations

import ipaddress
import math
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from serve.problems import Problem

BODY = 64 * 1024
BATCH_BODY = 256 * 1024
ANALYSIS_BODY = 2 * 1024 * 1024
BATCH_POSITIONS = 64
MAX_BUDGET_MS = 2_000
DEFAULT_BUDGET_MS = 300
MAX_BATCH_BUDGET_MS = 10_000
MAX_UNTIMED_BATCH = 16  # positions for a costly agent that no time can be set for
MAX_SAMPLES = 20_000
MAX_ANALYSIS_S = 10.0
MAX_REVIEW_S = 1_800.0  # of a review by an agent that searches, made in the background
MAX_REVIEWS = 8  # that wait or run in a process
MAX_TURNS = 5_000  # of a game kept here, whose every move is followed again for each answer
MAX_MATCH_GAMES = 1_000
MAX_SEED = 2**53 - 1  # the largest integer that every JSON reader keeps exact
JSON_ERRORS = 20
RETRY_AFTER_S = 1


def free_cores(processes: int = 1) -> int:
    """Cores that one of several equal processes may give to searches: all of its own but one.

    At least 1, and at most 4.
    """
    known = hasattr(os, "sched_getaffinity")
    cores = len(os.sched_getaffinity(0)) if known else os.cpu_count() or 1
    return max(1, min(4, cores // processes - 1))


class RateLimit:
    """A bucket of tokens for each client: every request takes one, and they come back with time.

    It counts in this process alone. An IPv6 client is a /64 network, all of which it has.

    Args:
        per_second: requests that a client may make on average.
        burst: requests at once after a pause; None for four seconds' worth, but 60 or more.
        clock: seconds, for tests.
    """

    CLIENTS = 10_000

    def __init__(
        self,
        per_second: float,
        burst: float | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._per_second = per_second
        self._burst = max(60.0, 4 * per_second) if burst is None else burst
        self._clock = clock
        self._lock = threading.Lock()
        # Tokens and when they were counted; who asked last stands last.
        self._clients: dict[str, tuple[float, float]] = {}

    def check(self, address: str | None) -> None:
        """Take a token of a client's.

        Raises:
            Problem: "too-many-requests".
        """
        client = _network(address or "")
        now = self._clock()
        with self._lock:
            tokens, then = self._clients.pop(client, (self._burst, now))
            tokens = min(self._burst, tokens + (now - then) * self._per_second)
            allowed = tokens >= 1
            self._clients[client] = (tokens - 1 if allowed else tokens, now)
            if len(self._clients) > self.CLIENTS:  # whoever has not asked for longest starts anew
                del self._clients[next(iter(self._clients))]
        if not allowed:
            raise Problem(
                "too-many-requests",
                f"{self._per_second:g} requests a second are allowed",
                headers={"Retry-After": str(math.ceil((1 - tokens) / self._per_second))},
            )


def _network(address: str) -> str:
    try:
        parsed = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if parsed.version == 4:
        return address
    if parsed.ipv4_mapped:
        return str(parsed.ipv4_mapped)
    return str(ipaddress.ip_network((parsed, 64), strict=False))


class Gate:
    """Lets a few costly searches run at once and a few more wait; others get 503 and Retry-After.

    A search takes a core for its whole budget. With one core left free, and at most `queue` threads
    of the server waiting, cheap requests and health checks are answered meanwhile.

    Args:
        slots: searches at once.
        queue: requests that may wait.
        wait_s: how long one waits at most.
    """

    def __init__(self, slots: int, queue: int = 2, wait_s: float = 2.0) -> None:
        self.slots = slots
        self._free = threading.BoundedSemaphore(self.slots)
        self._lock = threading.Lock()
        self._queue = queue
        self._waiting = 0
        self._wait_s = wait_s

    @property
    def threads(self) -> int:
        """Threads that a server needs, so that all these searches leave one for the rest."""
        return self.slots + self._queue + 1

    @contextmanager
    def enter(self) -> Iterator[None]:
        """Hold a place for the time of a search.

        Raises:
            Problem: "busy", where no place is free or gets free in time.
        """
        if not self._free.acquire(blocking=False):
            self._wait()
        try:
            yield
        finally:
            self._free.release()

    @contextmanager
    def enter_patiently(self) -> Iterator[None]:
        """Hold a place, however long it takes to get one; for work that nobody waits for."""
        with self._free:
            yield

    def _wait(self) -> None:
        with self._lock:
            if self._waiting >= self._queue:
                raise self._busy()
            self._waiting += 1
        try:
            entered = self._free.acquire(timeout=self._wait_s)
        finally:
            with self._lock:
                self._waiting -= 1
        if not entered:
            raise self._busy()

    def _busy(self) -> Problem:
        return Problem(
            "busy",
            f"{self.slots} searches are running and {self._queue} waiting; try again",
            headers={"Retry-After": str(RETRY_AFTER_S)},
        )
