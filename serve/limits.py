"""What one client may ask for: sizes, counts and times, and the gate before costly searches."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from serve.problems import Problem

BODY = 64 * 1024
BATCH_BODY = 256 * 1024
BATCH_POSITIONS = 64
MAX_BUDGET_MS = 2_000
MAX_BATCH_BUDGET_MS = 10_000
MAX_SAMPLES = 20_000
MAX_SEED = 2**53 - 1  # the largest integer that every JSON reader keeps exact
JSON_ERRORS = 20
RETRY_AFTER_S = 1


def cores() -> int:
    """Cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


class Gate:
    """Lets a few costly searches run at once and a few more wait; others get 503 and Retry-After.

    A search takes a core for its whole budget. With one core left free, and at most `queue` threads
    of the server waiting, cheap requests and health checks are answered meanwhile.

    Args:
        slots: searches at once; None for one less than the cores, but 1 to 4.
        queue: requests that may wait.
        wait_s: how long one waits at most.
    """

    def __init__(self, slots: int | None = None, queue: int = 2, wait_s: float = 2.0) -> None:
        self.slots = slots if slots is not None else max(1, min(4, cores() - 1))
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
