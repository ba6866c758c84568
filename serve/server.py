"""The waitress server around the application: limits, its own errors as problems, a gentle stop."""

from __future__ import annotations

import logging
import secrets
import signal
import sys
from typing import Any

from flask import Flask
from waitress.channel import HTTPChannel
from waitress.server import create_server
from waitress.task import ErrorTask

from serve.operations import to_json
from serve.problems import Problem

# Above the limits of all operations, whose answer says more; below what would fill a disk.
MAX_BODY = 16 * 1024 * 1024
_KINDS = {400: "bad-request", 413: "too-large"}


def switch_often() -> None:
    """Have Python's threads take turns every millisecond, not every five: a short answer waits for
    the interpreter several times, and each time for every thread that is busy.
    """
    sys.setswitchinterval(0.001)


def address(host: str, port: int) -> str:
    """A host and a port as one text."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def page_url(host: str, port: int) -> str:
    """Where a browser on this machine finds the page: an address of all is none to go to."""
    loopback = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 - compared with, not listened on
    return f"http://{address(loopback.get(host, host), port)}"


def refusal(status: int, reason: str) -> tuple[list[tuple[str, str]], bytes]:
    """The headers and the body of what a server refuses before the application sees it."""
    request_id = secrets.token_hex(16)
    problem = Problem(_KINDS.get(status, "http-error"), reason, status=status)
    headers = [
        ("Content-Type", "application/problem+json"),
        ("X-Request-ID", request_id),
        ("X-Content-Type-Options", "nosniff"),
        ("Cache-Control", "no-store"),
    ]
    return headers, to_json(problem.to_json("/", request_id)).encode()


class _ProblemTask(ErrorTask):
    """What waitress refuses before the application sees it, such as a broken request line."""

    def execute(self) -> None:
        """Answer with a problem instead of text."""
        error = self.request.error
        headers, body = refusal(error.code, error.reason)
        self.status = f"{error.code} {error.reason}"
        self.response_headers += headers
        self.set_close_on_finish()
        self.content_length = len(body)
        self.write(body)


class _Channel(HTTPChannel):
    error_task_class = _ProblemTask


class Server:
    """Listens from the moment it is made; `run` serves until SIGTERM or Ctrl-C.

    Args:
        app: the application.
        host: an address or name to listen on.
        port: 0 takes a free one.
        threads: requests handled at once.
        behind_proxy: whether the application may see what a proxy says of its client.

    Raises:
        ValueError: no such host.
        OSError: the address cannot be listened on.
    """

    def __init__(
        self, app: Flask, host: str, port: int, threads: int, *, behind_proxy: bool = False
    ) -> None:
        # It warns of every request that waits for a thread; the latencies in /metrics say that.
        logging.getLogger("waitress.queue").setLevel(logging.ERROR)
        try:
            self._server: Any = create_server(
                app,
                host=host,
                port=port,
                threads=threads,
                channel_timeout=30,
                connection_limit=500,
                max_request_body_size=MAX_BODY,
                ident=None,
                clear_untrusted_proxy_headers=not behind_proxy,
            )
        except OSError as error:
            raise OSError(
                error.errno, f"{error.strerror}: {host}:{port} (--host, --port)"
            ) from None
        # A name such as "localhost" may stand for several addresses, each with its own socket.
        sockets = getattr(self._server, "effective_listen", None)
        self.port: int = sockets[0][1] if sockets else self._server.effective_port
        for listener in list(self._server.map.values()) if sockets else [self._server]:
            if hasattr(listener, "channel_class"):
                listener.channel_class = _Channel
        self.url = page_url(host, self.port)

    def run(self) -> None:
        """Serve until SIGTERM or Ctrl-C, then let running requests finish (5 seconds at most)."""
        switch_often()
        # Raised in waitress's loop, which catches it and closes.
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
        self._server.run()
