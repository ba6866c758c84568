"""The application as servers run it; `app` is made from the environment, for gunicorn.

To be imported in each of gunicorn's workers, not before it forks: kernels, models, connections and
the thread that warms them belong to one process.
"""

from __future__ import annotations

import dataclasses
import logging
import sys
from typing import Any

from flask import Flask

from serve.settings import Settings, one_math_thread


def make_app(settings: Settings) -> Flask:
    """The application, with its log on standard error and its hosts from the address."""
    one_math_thread()
    from serve.app import create_app  # imports numpy

    if settings.log:
        logging.basicConfig(level=logging.INFO, format="%(message)s", stream=sys.stderr)
    return create_app(settings=dataclasses.replace(settings, trusted_host=settings.hosts))


def __getattr__(name: str) -> Any:
    if name == "app":
        globals()[name] = make_app(Settings())
        return globals()[name]
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
