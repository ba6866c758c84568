"""`skipbo serve`: run the service, on this machine alone unless told otherwise."""

from __future__ import annotations

import dataclasses
import os
import sys
import threading
import typing
from typing import TYPE_CHECKING, Annotated, Any

import tyro

from serve.settings import Settings, one_math_thread, prepare_metrics

if TYPE_CHECKING:
    from serve.service import Service


def _flags() -> type:
    """`Settings` as tyro reads it: with a sentence and the variable's name for each flag."""
    hints = typing.get_type_hints(Settings)
    made: list[Any] = []
    for field in dataclasses.fields(Settings):
        text = f"{field.metadata['meaning']} [{field.metadata['variable']}]"
        flag: Any = Annotated[hints[field.name], tyro.conf.arg(help=text)]
        made.append((field.name, flag, dataclasses.field(default_factory=field.default_factory)))
    return dataclasses.make_dataclass("Flags", made)


Flags = _flags()


def serve(settings: Flags) -> int:  # type: ignore[valid-type]
    """Run the HTTP service until Ctrl-C or SIGTERM, which let running requests finish.

    Example: skipbo serve --port 8000 --agent greedy

    Every flag is also a variable of the environment, named in brackets; lists have commas there.
    """
    return run(Settings(**vars(settings)))


def run(settings: Settings) -> int:
    """Run the service with these settings until it is told to stop; returns an exit code."""
    one_math_thread()
    if settings.workers > 1:
        return _run_workers(settings)
    if settings.metrics_dir is not None:  # which serve.metrics looks for when it is imported
        prepare_metrics(settings.metrics_dir)
    from serve.server import Server
    from serve.wsgi import make_app

    app = make_app(settings)
    state: Service = app.extensions["skipbo"]
    server = Server(
        app, settings.host, settings.port, settings.handlers, behind_proxy=settings.proxies > 0
    )

    def announce() -> None:
        print("Skip-Bo service starting", flush=True)  # the next line has its address
        state.ready.wait()
        agent = state.agents.default.name
        print(f"Skip-Bo service ready: open {server.url} (agent: {agent})", flush=True)

    threading.Thread(target=announce, name="announce", daemon=True).start()
    server.run()
    return 0


def _run_workers(settings: Settings) -> int:
    """Become gunicorn with serve/workers.py."""
    try:
        import gunicorn  # noqa: F401
    except ImportError:
        raise ValueError(
            "workers: several processes need gunicorn, which is not here; Windows has none"
        ) from None
    settings.export(os.environ)
    command = [sys.executable, "-m", "gunicorn", "-c", "python:serve.workers"]
    os.execv(sys.executable, command)  # noqa: S606 - this program again


def main() -> None:
    """`python -m serve`."""
    from skipbo_env.cli import run as run_command

    sys.exit(run_command(serve, "serve", sys.argv[1:]))
