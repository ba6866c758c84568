"""The HTTP service: suggestions for Skip-Bo positions as JSON. Imports skipbo_env alone, no torch.

`create_app` is the Flask application factory, `serve.cli` the command that runs it. Flask and the
engine are imported when `create_app` is first asked for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from serve.app import create_app as create_app

__all__ = ["create_app"]


def __getattr__(name: str) -> Any:
    if name == "create_app":
        from serve.app import create_app

        return create_app
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
