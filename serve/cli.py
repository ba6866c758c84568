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
    max_games: int = 10_000,
    keep_days: float = 30.0,
    rate_limit: float | None = None,
    proxies: int = 0,
    log: bool = False,
) -> int:
    """Run the HTTP service until Ctrl-C or SIGTERM, which let running requests finish.

    Example: skipbo serve --port 8000 --agent greedy

    Args:
        host: The address to listen on. 0.0.0.0 opens the service to the network.
        port: The port to listen on; 0 takes a free one.
        agent: Who answers where a request names no agent; the best one unless given.
        models_dir: A directory of models beside those that ship.
        database_url: Where games are kept, such as sqlite:///games.db or
            postgresql+psycopg://user@host/name; a file in the user's data directory unless given.
        threads: Requests handled at once.
        cors_origin: Origins whose pages may use the service.
        trusted_host: Names that the Host header may have; unless given any, on loopback its own.
        max_games: Games that may be open at once, and matches.
        keep_days: Days that games and matches are kept after their last change.
        rate_limit: Requests a second that one client may make; no limit unless given.
        proxies: How many proxies of your own stand before the service and tell the client's
            address in X-Forwarded-For.
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
        max_games=max_games,
        keep_days=keep_days,
        rate_limit=rate_limit,
        proxies=proxies,
    )
    state: Service = app.extensions["skipbo"]
    if threads < state.gate.threads:
        raise ValueError(f"threads: needs {state.gate.threads} or more, got {threads}")
    server = Server(app, host, port, threads, behind_proxy=proxies > 0)

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
