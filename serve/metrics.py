"""Counters for Prometheus at /metrics: requests, and how long they and the agents take.

Where several processes serve, PROMETHEUS_MULTIPROC_DIR names a folder in which prometheus_client
has them put their counts together; it has to be set before this module is imported.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping

import prometheus_client
from prometheus_client import CONTENT_TYPE_LATEST as CONTENT_TYPE
from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.multiprocess import MultiProcessCollector
from prometheus_client.registry import Collector

from serve.settings import METRICS_VARIABLE

__all__ = ["BUCKETS", "CONTENT_TYPE", "Gauge", "Metrics"]

BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)

Gauge = tuple[str, str, Iterable[tuple[Mapping[str, str], float]]]

prometheus_client.disable_created_metrics()


class Metrics:
    """Requests by route and status, and how long requests and agents take."""

    def __init__(self) -> None:
        own = self._registry = CollectorRegistry()
        self._requests = Counter(
            "skipbo_requests", "Requests by route and status.", ["route", "status"], registry=own
        )
        self._request_seconds = Histogram(
            "skipbo_request_seconds",
            "Seconds that requests took.",
            ["route"],
            buckets=BUCKETS,
            registry=own,
        )
        self._agent_seconds = Histogram(
            "skipbo_agent_seconds",
            "Seconds that agents took for an answer.",
            ["method"],
            buckets=BUCKETS,
            registry=own,
        )

    def request(self, route: str, status: int, seconds: float) -> None:
        """Count a request."""
        self._requests.labels(route, str(status)).inc()
        self._request_seconds.labels(route).observe(seconds)

    def agent(self, method: str, seconds: float) -> None:
        """Count an agent's work for one answer."""
        self._agent_seconds.labels(method).observe(seconds)

    def text(self, gauges: Iterable[Gauge]) -> bytes:
        """All metrics of all processes, in Prometheus's text format.

        Args:
            gauges: (name, help, [(labels, value)]) of what is measured now.
        """
        counted = self._registry
        if os.environ.get(METRICS_VARIABLE):
            counted = CollectorRegistry()
            MultiProcessCollector(counted)
        measured = CollectorRegistry()
        measured.register(_Measured(list(gauges)))
        return generate_latest(counted) + generate_latest(measured)


class _Measured(Collector):
    """Gauges whose values are known when they are asked for."""

    def __init__(self, gauges: list[Gauge]) -> None:
        self._gauges = gauges

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """The gauges as prometheus_client has them."""
        for name, told, values in self._gauges:
            labels: list[str] = []
            family = None
            for named, value in values:
                labels = list(named)
                family = family or GaugeMetricFamily(name, told, labels=labels)
                family.add_metric(list(named.values()), value)
            yield family or GaugeMetricFamily(name, told, labels=labels)
