"""The table page at `/` and its files: read once, sent with ETags and a strict content policy.

The page is a client of the API like any other; nothing here knows the game. Its files lie in
serve/static: plain ES modules and CSS, no build step.
"""

from __future__ import annotations

import hashlib
from importlib import resources
from typing import NamedTuple

from flask import Flask, Response, request

from serve.problems import Problem

CSP = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'"
)
_TYPES = {
    "html": "text/html; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
}


class _File(NamedTuple):
    data: bytes
    content_type: str
    etag: str


def _read() -> dict[str, _File]:
    """Every file of serve/static by name; only these names can be asked for."""
    files = {}
    for entry in (resources.files("serve") / "static").iterdir():
        content_type = _TYPES.get(entry.name.rpartition(".")[2])
        if content_type is not None:
            data = entry.read_bytes()
            files[entry.name] = _File(data, content_type, hashlib.sha256(data).hexdigest()[:32])
    return files


def register_page(app: Flask) -> None:
    """Add `/` and `/static/<name>` to an app."""
    files = _read()

    def send(name: str) -> Response:
        file = files.get(name)
        if file is None:
            raise Problem("not-found", f"no file {name[:60]!r} here")
        response = Response(file.data, content_type=file.content_type)
        response.set_etag(file.etag)
        # The names stay the same from version to version, so a browser asks each time; the answer
        # is 304 without a body unless the file has changed.
        response.headers["Cache-Control"] = "no-cache"
        response.headers["Content-Security-Policy"] = CSP
        response.make_conditional(request)
        return response

    app.add_url_rule("/", "page", lambda: send("index.html"))
    app.add_url_rule("/static/<name>", "static", send)
