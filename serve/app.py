"""The application factory: settings, endpoints, and what every answer has.

That is the security headers, a request id, CORS where it is allowed, and problems for all errors.
"""

from __future__ import annotations

import gc
import json
import logging
import os
import re
import secrets
import threading
import time
from contextlib import suppress
from typing import Any

from flask import Flask, Response, current_app, g, request
from werkzeug.exceptions import HTTPException
from werkzeug.middleware.proxy_fix import ProxyFix

import serve.matches
import serve.review  # noqa: F401 - like the line before it, declares operations
import skipbo_env
from serve import docs, games, limits, schemas, suggest
from serve.limits import Gate, RateLimit, free_cores
from serve.metrics import CONTENT_TYPE, Gauge, Metrics
from serve.openapi import document
from serve.operations import json_response, operation, problem_response, register
from serve.page import register_page
from serve.problems import KINDS, Problem
from serve.service import Agents, Service, service
from serve.settings import Settings, host_name
from serve.store import GAMES, IN_MEMORY, MATCHES, Store, default_url

LOG = logging.getLogger("serve")
_HOST = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[^\s:\[\]]+)(?::[0-9]{1,5})?")
_REQUEST_ID = re.compile(r"[A-Za-z0-9-]{1,64}")
_KIND_OF_STATUS = {
    400: "bad-request",
    404: "not-found",
    405: "method-not-allowed",
    413: "too-large",
    415: "unsupported-media-type",
}
_HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Content-Security-Policy": "default-src 'none'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=(), payment=()",
    "Cache-Control": "no-store",
}
_UNLIMITED = ("/healthz", "/readyz")
_EXPOSED = "X-Request-ID, Retry-After, Location"


@operation("GET", "/healthz", returns=schemas.Health)
def healthz() -> dict[str, str]:
    """Tell that the process answers."""
    return {"status": "ok"}


@operation("GET", "/readyz", returns=schemas.Ready, problems=("not-ready",))
def readyz() -> dict[str, Any]:
    """Tell whether the kernels are compiled and the agent is loaded, and what is missing."""
    state = service()
    if not state.ready.is_set():
        raise Problem("not-ready", "the kernels are being compiled", headers={"Retry-After": "1"})
    models = state.agents.models
    warnings = [f"the model {name} is damaged and left out" for name in state.agents.damaged]
    if not models:
        warnings.append("there is no model; rule-based agents answer, without probabilities")
    return {"status": "ready", "models": models, "warnings": warnings}


def create_app(
    *,
    agent: str | None = None,
    database_url: str | None = None,
    models_dir: str | os.PathLike[str] | None = None,
    testing: bool = False,
    settings: Settings | None = None,
) -> Flask:
    """Make the service.

    The kernels are warmed in a thread; `/readyz` tells when that is done. In tests it is done
    before this returns.

    Args:
        agent: who answers where a request names no agent; None for what the settings say.
        database_url: where games are kept, as SQLAlchemy has it; None for what the settings say.
            Where those say nothing it is a SQLite file in the user's data directory, in tests one
            in memory.
        models_dir: a directory of models beside those that ship; None for what the settings say.
        testing: compare answers with their schemas, and warm the kernels first.
        settings: all settings; None for those of the environment.

    Raises:
        ValueError: no such agent, no such database, one made by a newer program, or a setting out
            of its range.
    """
    settings = settings or Settings()
    database_url = database_url or settings.database_url
    app = Flask(__name__, static_folder=None)
    app.testing = testing
    # Assigned, since Flask presets the key. Each operation lowers it to its own limit.
    app.config["MAX_CONTENT_LENGTH"] = max(limits.BODY, limits.BATCH_BODY, limits.ANALYSIS_BODY)
    app.config["HOSTS"] = frozenset(map(host_name, settings.trusted_host))
    app.config["CORS_ORIGINS"] = frozenset(settings.cors_origin)
    app.url_map.merge_slashes = False
    store = Store(
        database_url or (IN_MEMORY if testing else default_url()),
        engine=skipbo_env.__version__,
        max_open=settings.max_games,
        keep_days=settings.keep_days,
    )
    gate = Gate(settings.searches or free_cores(settings.workers))
    if settings.handlers < gate.threads:
        raise ValueError(
            f"threads: {gate.slots} searches at once need {gate.threads} or more, "
            f"got {settings.handlers}"
        )
    metrics = Metrics()
    limit = settings.rate_limit
    app.extensions["skipbo"] = Service(
        Agents(models_dir or settings.models_dir, agent or settings.agent, metrics),
        store,
        metrics,
        gate,
        rate_limit=None if limit is None else RateLimit(limit),
    )
    with suppress(Problem):  # logged; tried again with every request, suggestions do without
        store.prepare()
    register(app)
    register_page(app)
    app.add_url_rule("/v1/openapi.json", "openapi", lambda: json_response(document()))
    app.add_url_rule("/docs", "docs", _docs)
    app.add_url_rule("/metrics", "metrics", _metrics)
    app.add_url_rule("/problems/<kind>", "problems", _describe_problem)
    if near := settings.proxies:
        app.wsgi_app = ProxyFix(app.wsgi_app, x_for=near, x_proto=near)  # type: ignore[method-assign]
    app.before_request(_begin)
    app.after_request(_finish)
    app.register_error_handler(Exception, _answer_error)
    warming = threading.Thread(target=_warm, args=(app,), name="warm-up", daemon=True)
    warming.start()
    if testing:
        warming.join()
    return app


def _warm(app: Flask) -> None:
    """Compile all kernels that suggestions need; ready is who can answer with the own agent."""
    with app.app_context():
        games.warm()
        able = []
        for choice in service().agents.to_warm():
            try:
                suggest.warm(choice)
            except Exception:
                LOG.exception("warming up %s failed", choice.name)
            else:
                able.append(choice)
        if service().agents.default in able:
            service().ready.set()
    if not app.testing:  # what is loaded by now stays, so the collector need not look at it again
        gc.collect()
        gc.freeze()


def _docs() -> Response:
    """Every call, for people."""
    response = Response(docs.page(document()), mimetype="text/html")
    response.headers["Content-Security-Policy"] = docs.CSP
    return response


def _metrics() -> Response:
    """The counters, for Prometheus."""
    state = service()
    gauges: list[Gauge] = [
        (
            "skipbo_model_info",
            "The models that can be asked for.",
            [
                ({"name": str(entry["name"]), "sha256": str(entry["sha256"])}, 1)
                for entry in state.agents.listed.values()
                if entry.get("sha256")
            ],
        )
    ]
    with suppress(Problem):  # without its database the service has still something to tell
        for table in (GAMES, MATCHES):
            count = state.store.count_open(table)
            gauges.append((f"skipbo_open_{table.name}", f"Open {table.name}.", [({}, count)]))
    return Response(state.metrics.text(gauges), content_type=CONTENT_TYPE)


def _describe_problem(kind: str) -> Response:
    """What a problem's type means."""
    if kind not in KINDS:
        raise Problem("not-found", f"no kind of problem {kind[:40]!r}")
    status, title, meaning = KINDS[kind]
    return json_response(
        {"type": f"/problems/{kind}", "title": title, "status": status, "meaning": meaning}
    )


def _begin() -> None:
    """Name a request, and refuse it where its Host is another's or its client asks too often."""
    _name_request()
    _check_host(request.headers.get("Host", ""))
    if (limit := service().rate_limit) is not None and request.path not in _UNLIMITED:
        limit.check(request.remote_addr)


def _check_host(host: str) -> None:
    """Refuse other names than those that are trusted, if any are. Whether the service is well may
    be asked under any: containers and proxies do so by address.

    Raises:
        Problem: "untrusted-host".
    """
    trusted: frozenset[str] = current_app.config["HOSTS"]
    if not trusted or request.path in _UNLIMITED:
        return
    match = _HOST.fullmatch(host)
    name = host_name(match[1]) if match else ""
    labels = name.split(".")
    names = {name, *("." + ".".join(labels[k:]) for k in range(len(labels)))}
    if not match or not name or not names & trusted:
        raise Problem("untrusted-host", f"Host {host[:80]!r} is not trusted.")


def _name_request() -> None:
    given = request.headers.get("X-Request-ID", "")
    g.request_id = given if _REQUEST_ID.fullmatch(given) else secrets.token_hex(16)
    g.started = time.perf_counter()


def _finish(response: Response) -> Response:
    """Give an answer the headers that all have, and write the log's line."""
    if "request_id" not in g:  # an error before the request began
        _name_request()
    given = {name.lower() for name, _ in response.headers}
    response.headers.extend(
        [(name, value) for name, value in _HEADERS.items() if name.lower() not in given]
    )
    response.headers["X-Request-ID"] = g.request_id
    _allow_origin(response)
    seconds = time.perf_counter() - g.started
    route = "none" if request.url_rule is None else request.url_rule.rule
    service().metrics.request(route, response.status_code, seconds)
    if LOG.isEnabledFor(logging.INFO):
        LOG.info(
            json.dumps(
                {
                    "request_id": g.request_id,
                    "method": request.method,
                    "path": request.path[:200],
                    "status": response.status_code,
                    "ms": round(1000 * seconds, 2),
                }
            )
        )
    return response


def _allow_origin(response: Response) -> None:
    """CORS for origins of the allow list, on errors too; preflights get Flask's OPTIONS answers."""
    allowed = current_app.config["CORS_ORIGINS"]
    if not allowed:
        return
    response.headers.add("Vary", "Origin")
    origin = request.headers.get("Origin")
    if origin not in allowed:
        return
    response.headers["Access-Control-Allow-Origin"] = origin
    response.headers["Access-Control-Expose-Headers"] = _EXPOSED
    response.headers["Cross-Origin-Resource-Policy"] = "cross-origin"
    if request.method == "OPTIONS":
        response.headers["Access-Control-Allow-Methods"] = response.headers.get(
            "Allow", "GET, POST"
        )
        response.headers["Access-Control-Allow-Headers"] = "Content-Type, X-Request-ID"
        response.headers["Access-Control-Max-Age"] = "600"


def _answer_error(error: Exception) -> Response:
    """Any exception as a problem."""
    if isinstance(error, Problem):
        return problem_response(error)
    if isinstance(error, HTTPException):
        return problem_response(_http_problem(error))
    LOG.exception("request %s failed", g.get("request_id", ""))
    return problem_response(
        Problem("internal-error", "something went wrong; the log has this request's id")
    )


def _http_problem(error: HTTPException) -> Problem:
    """Flask's and Werkzeug's own errors."""
    status = error.code or 500
    kind = _KIND_OF_STATUS.get(status)
    headers = {
        k: v for k, v in error.get_headers() if k.lower() not in ("content-type", "content-length")
    }
    return Problem(
        kind or "http-error", error.description or error.name, headers=headers, status=status
    )
