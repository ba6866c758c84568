"""`skipbo serve`: run the service with waitress, on this machine alone unless told otherwise."""

from __future__ import annotations

import logging
import sys
import threading
from pathlib import Path

_LOOPBACK = ("127.0.0.1", "localhost")


def serve(
    host: str = "127.0.0.1",
    port: int = 8000,
    agent: str | None = None,
    models_dir: Path | None = None,
    database_url: str | None = None,
    threads: int = 8,
    cors_origin: tuple[str, ...] = (),
    trusted_host: tuple[str, ...] = (),
    log: bool = False,
) -> int:
    """Run the HTTP service until Ctrl-C or SIGTERM, which let running requests finish.

    Example: skipbo serve --port 8000 --agent greedy

    Args:
        host: The address to listen on. 0.0.0.0 opens the service to the network.
        port: The port to listen on; 0 takes a free one.
        agent: Who answers where a request names no agent; the best one unless given.
        models_dir: A directory of models beside those that ship.
        database_url: Where games are kept.
        threads: Requests handled at once.
        cors_origin: Origins whose pages may use the service.
        trusted_host: Names that the Host header may have; unless given any, on loopback its own.
        log: Write one line of JSON for every request to standard error.
    """
    from serve.app import create_app
    from serve.server import Server
    from serve.service import Service

    if log:
        logging.basicConfig(level=logging.INFO, format="%(message)s", stream=sys.stderr)
    hosts = trusted_host or (_LOOPBACK if host in _LOOPBACK else ())
    app = create_app(
        agent=agent,
        database_url=database_url,
        models_dir=models_dir,
        cors_origins=cors_origin,
        trusted_hosts=hosts,
    )
    state: Service = app.extensions["skipbo"]
    if threads < state.gate.threads:
        raise ValueError(f"threads: needs {state.gate.threads} or more, got {threads}")
    server = Server(app, host, port, threads)

    def announce() -> None:
        state.ready.wait()
        print(
            f"Skip-Bo service ready at {server.url}, agent {state.agents.default.name}", flush=True
        )

    threading.Thread(target=announce, name="announce", daemon=True).start()
    server.run()
    return 0


def main() -> None:
    """`python -m serve`."""
    from skipbo_env.cli import run

    sys.exit(run(serve, "serve", sys.argv[1:]))
