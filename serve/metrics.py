"""Counters for Prometheus at /metrics, in its text format (version 0.0.4).

Each process counts for itself. Where several serve, they are given a common folder, emptied before
they start: each writes its counts there once a second, and whichever is asked adds all of them up.
"""

from __future__ import annotations

import atexit
import json
import os
import secrets
import threading
from bisect import bisect_left
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
_WRITE_EVERY_S = 1.0

Gauge = tuple[str, str, Iterable[tuple[Mapping[str, str], float]]]


class Metrics:
    """Requests by route and status, and how long requests and agents take.

    Args:
        folder: where the processes of one service put their counts together; None for one process.
    """

    def __init__(self, folder: str | os.PathLike[str] | None = None) -> None:
        self._lock = threading.Lock()
        self._requests: dict[tuple[str, str], float] = {}
        # Per route or method: a count for each bucket and one for what takes longer, and the sum.
        self._seconds: dict[tuple[str, str], list[float]] = {}
        self._folder = None if folder is None else Path(folder)
        self._file = f"{os.getpid()}-{secrets.token_hex(4)}.json"
        self._changed = threading.Event()
        self._stopped = threading.Event()
        if self._folder is not None:
            self._folder.mkdir(parents=True, exist_ok=True)
            threading.Thread(target=self._write_often, name="metrics", daemon=True).start()
            atexit.register(self.write)

    def request(self, route: str, status: int, seconds: float) -> None:
        """Count a request."""
        with self._lock:
            key = (route, str(status))
            self._requests[key] = self._requests.get(key, 0) + 1
            self._observe("request", route, seconds)
        self._changed.set()

    def agent(self, method: str, seconds: float) -> None:
        """Count an agent's work for one answer."""
        with self._lock:
            self._observe("agent", method, seconds)
        self._changed.set()

    def _observe(self, name: str, label: str, seconds: float) -> None:
        cells = self._seconds.setdefault((name, label), [0.0] * (len(BUCKETS) + 2))
        cells[bisect_left(BUCKETS, seconds)] += 1
        cells[-1] += seconds

    def _write_often(self) -> None:
        while not self._stopped.wait(_WRITE_EVERY_S):
            if self._changed.is_set():
                self._changed.clear()
                self.write()

    def write(self) -> None:
        """Write this process's counts to the folder, if there is one."""
        if self._folder is None:
            return
        requests, seconds = self._own()
        data = {
            "requests": [[*key, value] for key, value in requests.items()],
            "seconds": [[*key, cells] for key, cells in seconds.items()],
        }
        new = self._folder / f"{self._file}.new"
        try:
            new.write_text(json.dumps(data), encoding="utf-8")
            new.replace(self._folder / self._file)
        except OSError:  # a full disk stops no request
            self._changed.set()

    def close(self) -> None:
        """Write for the last time."""
        self._stopped.set()
        self.write()
        atexit.unregister(self.write)

    def _own(self) -> tuple[dict[tuple[str, str], float], dict[tuple[str, str], list[float]]]:
        with self._lock:
            return dict(self._requests), {key: list(n) for key, n in self._seconds.items()}

    def _all(self) -> tuple[dict[tuple[str, str], float], dict[tuple[str, str], list[float]]]:
        """The counts of all processes together."""
        requests, seconds = self._own()
        for path in self._folder.glob("*.json") if self._folder is not None else ():
            if path.name == self._file:
                continue
            try:
                data = json.loads(path.read_text(encoding="utf-8"))
            except (OSError, ValueError):
                continue
            for route, status, value in data["requests"]:
                requests[route, status] = requests.get((route, status), 0) + value
            for name, label, cells in data["seconds"]:
                have = seconds.setdefault((name, label), [0.0] * len(cells))
                seconds[name, label] = [a + b for a, b in zip(have, cells, strict=True)]
        return requests, seconds

    def text(self, gauges: Iterable[Gauge]) -> str:
        """All metrics.

        Args:
            gauges: (name, help, [(labels, value)]) of what is measured now.
        """
        requests, seconds = self._all()
        lines = _head("skipbo_requests_total", "counter", "Requests by route and status.")
        for (route, status), value in sorted(requests.items()):
            lines.append(_line("skipbo_requests_total", {"route": route, "status": status}, value))
        for name, label, told in (
            ("request", "route", "Seconds that requests took."),
            ("agent", "method", "Seconds that agents took for an answer."),
        ):
            metric = f"skipbo_{name}_seconds"
            lines += _head(metric, "histogram", told)
            for (kind, text), cells in sorted(seconds.items()):
                if kind == name:
                    lines += _histogram(metric, {label: text}, cells)
        for metric, told, values in gauges:
            lines += _head(metric, "gauge", told)
            lines += [_line(metric, labels, value) for labels, value in values]
        return "\n".join(lines) + "\n"


def _histogram(metric: str, labels: Mapping[str, str], cells: list[float]) -> list[str]:
    lines, total = [], 0.0
    for bound, count in zip((*map(str, BUCKETS), "+Inf"), cells, strict=False):
        total += count
        lines.append(_line(f"{metric}_bucket", {**labels, "le": bound}, total))
    return [
        *lines,
        _line(f"{metric}_sum", labels, cells[-1]),
        _line(f"{metric}_count", labels, total),
    ]


def _head(metric: str, kind: str, told: str) -> list[str]:
    return [f"# HELP {metric} {told}", f"# TYPE {metric} {kind}"]


def _line(metric: str, labels: Mapping[str, str], value: Any) -> str:
    told = ",".join(f'{name}="{_escaped(text)}"' for name, text in labels.items())
    number = f"{value:.9g}" if value != int(value) else str(int(value))
    return f"{metric}{{{told}}} {number}" if told else f"{metric} {number}"


def _escaped(text: str) -> str:
    return text.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
