"""gunicorn's configuration: `gunicorn -c python:serve.workers`, or `skipbo serve --workers 2`.

Threads in each of several processes, none of them preloaded: each worker imports the application
after the fork, since kernels, models, connections and the thread that warms them belong to one
process. The settings come from the environment, see serve/settings.py.
"""

from __future__ import annotations

import shutil
import socket
import struct
import tempfile
from pathlib import Path
from typing import Any

from gunicorn import util

from serve.server import address, page_url, refusal, switch_often
from serve.settings import Settings, one_math_thread, prepare_metrics

STALL_S = 10  # that a client may stop in the middle of a request or an answer

settings = Settings()
one_math_thread()

# gunicorn's settings.
wsgi_app = "serve.wsgi:app"
bind = address(settings.host, settings.port)
workers = settings.workers
worker_class = "gthread"
threads = settings.handlers
preload_app = False
timeout = 30
graceful_timeout = 15  # a review takes up to 10 s
keepalive = 5
control_socket_disable = True  # its thread has deadlocked forked workers
loglevel = "warning"

_temporary: list[str] = []


def on_starting(server: Any) -> None:
    """Give the processes an empty folder to put their counts together in."""
    if settings.metrics_dir is None:
        _temporary.append(tempfile.mkdtemp(prefix="skipbo-metrics-"))
    prepare_metrics(Path(settings.metrics_dir or _temporary[-1]))


def when_ready(server: Any) -> None:
    """Tell where the service listens; it is ready once its processes are warm.

    A thread that reads a body, or writes to a client, waits for it: with a limit, which the
    connections take over from the socket that listens.
    """
    limit = struct.pack("ll", STALL_S, 0)
    for listener in server.LISTENERS:
        listener.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, limit)
        listener.sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, limit)
        name = listener.sock.getsockname()  # text, where it is a Unix socket
        url = page_url(*name[:2]) if isinstance(name, tuple) else str(listener)
        print(f"Skip-Bo service at {url} ({server.num_workers} processes)", flush=True)


def post_worker_init(worker: Any) -> None:
    """Have gunicorn's own refusals, such as of a broken request line, be problems too."""
    switch_often()
    util.write_error = _write_problem


def on_exit(server: Any) -> None:
    """Take the temporary folder away."""
    for folder in _temporary:
        shutil.rmtree(folder, ignore_errors=True)


def _write_problem(sock: Any, status: int, reason: str, message: str) -> None:
    headers, body = refusal(status, reason)
    lines = [f"HTTP/1.1 {status} {reason}", *(f"{name}: {value}" for name, value in headers)]
    lines += [f"Content-Length: {len(body)}", "Connection: close", "", ""]
    util.write_nonblock(sock, "\r\n".join(lines).encode("latin-1") + body)
