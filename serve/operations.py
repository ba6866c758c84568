"""`operation`: the one decorator behind every JSON endpoint.

It checks the content type, reads the body within its limit, validates it, calls the function, and
writes the answer or the problem. A module of endpoints only has to be imported by `serve.app`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, TypeVar

import numpy as np
from flask import Flask, Response, current_app, g, request
from pydantic import BaseModel, ValidationError
from pydantic_core import PydanticSerializationError, from_json
from pydantic_core import to_json as write_json
from werkzeug.exceptions import HTTPException

from serve import limits
from serve.problems import Problem, pointer_to

# What reading a broken body raises, beside Werkzeug's own: gunicorn's errors, where it serves.
_UNREADABLE: tuple[type[Exception], ...] = (OSError,)
with suppress(ImportError):  # not on Windows
    from gunicorn.http.errors import ParseException

    _UNREADABLE += (ParseException,)

_Body = TypeVar("_Body", bound=BaseModel)
_Function = TypeVar("_Function", bound=Callable[..., Any])
_ALWAYS = ("too-many-requests", "internal-error")
_WITH_BODY = ("bad-request", "not-json", "too-large", "unsupported-media-type", "invalid-body")


@dataclass(frozen=True)
class Later:
    """What an operation returns whose answer takes long: status 202.

    Attributes:
        data: JSON data that say how it stands.
        location: where to ask for it.
    """

    data: Any
    location: str


@dataclass(frozen=True)
class Operation:
    """One endpoint.

    Attributes:
        method: "GET" or "POST".
        path: with Flask's placeholders.
        function: called with `body` if there is one and the path's parameters; returns JSON data.
        summary, description: from its docstring.
        body: the request's model.
        returns: the answer's model.
        problems: kinds of problems that it may answer beside those that all may.
        limit: bytes of a body.
        status: of the answer; 201 names the new thing's address by its "id".
        optional: whether the body may be left out.
        later: the model of a 202 answer, where the function may return `Later`.
        plain: whether what it returns holds Python's own types and numpy's alone.
    """

    method: str
    path: str
    function: Callable[..., Any]
    summary: str
    description: str
    body: type[BaseModel] | None
    returns: type[BaseModel]
    problems: tuple[str, ...]
    limit: int
    status: int = 200
    optional: bool = False
    later: type[BaseModel] | None = None
    plain: bool = False

    @property
    def template(self) -> str:
        """The path as OpenAPI has it."""
        return self.path.replace("<", "{").replace(">", "}")


OPERATIONS: list[Operation] = []


def operation(
    method: str,
    path: str,
    *,
    returns: type[BaseModel],
    body: type[BaseModel] | None = None,
    problems: Sequence[str] = (),
    limit: int = limits.BODY,
    status: int = 200,
    optional: bool = False,
    later: type[BaseModel] | None = None,
    plain: bool = False,
) -> Callable[[_Function], _Function]:
    """Make a function an endpoint.

    Args:
        method: "GET" or "POST".
        path: its address, with Flask's placeholders.
        returns: the answer's model; answers are compared with it in tests.
        body: the request's model; the function gets it as `body`.
        problems: kinds of problems that the function raises.
        limit: bytes of a body.
        status: of the answer; 201 names the new thing's address by its "id".
        optional: the body may be left out, and is then the model's defaults.
        later: the model of a 202 answer; the function may then return `Later`.
        plain: whether what it returns holds Python's own types and numpy's alone, so that it can be
            written faster.
    """

    def decorate(function: _Function) -> _Function:
        summary, _, description = (function.__doc__ or "").strip().partition("\n\n")
        lines = (line.strip() for line in description.split("\n"))
        kinds = (*(_WITH_BODY if body else ()), *problems, *_ALWAYS)
        OPERATIONS.append(
            Operation(
                method,
                path,
                function,
                " ".join(summary.split()).rstrip("."),
                " ".join(line for line in lines if line),
                body,
                returns,
                tuple(dict.fromkeys(kinds)),
                limit,
                status,
                optional,
                later,
                plain,
            )
        )
        return function

    return decorate


def register(app: Flask) -> None:
    """Give an app all endpoints that have been declared."""
    for op in OPERATIONS:
        app.add_url_rule(
            op.path, endpoint=f"{op.method} {op.path}", view_func=_view(op), methods=[op.method]
        )


def _view(op: Operation) -> Callable[..., Response]:
    def view(**parameters: Any) -> Response:
        if op.body is not None:
            left_out = op.optional and not _has_body()
            parameters["body"] = op.body() if left_out else read_body(op.body, op.limit)
        data = op.function(**parameters)
        if isinstance(data, Later):
            response = json_response(data.data, model=op.later, status=202)
            response.headers["Location"] = data.location
            return response
        response = json_response(data, model=op.returns, status=op.status, plain=op.plain)
        if op.status == 201:
            response.headers["Location"] = f"{op.path}/{data['id']}"
        return response

    return view


def _has_body() -> bool:
    return bool(request.content_length) or "Transfer-Encoding" in request.headers


def read_body(model: type[_Body], limit: int) -> _Body:
    """The request's body as a model.

    Raises:
        Problem: wrong content type, too large, no JSON, or not fitting the model.
    """
    if request.mimetype != "application/json":
        raise Problem("unsupported-media-type", "send Content-Type: application/json")
    charset = request.mimetype_params.get("charset", "utf-8")
    if charset.lower() not in ("utf-8", "utf8", "us-ascii"):
        raise Problem("unsupported-media-type", f"send UTF-8, not {charset[:40]!r}")
    if request.headers.get("Content-Encoding", "identity").lower() != "identity":
        raise Problem("unsupported-media-type", "send the body without Content-Encoding")
    # One byte more, since Werkzeug cuts a chunked body at the limit instead of refusing it.
    request.max_content_length = limit + 1
    try:
        data = request.get_data(cache=False)  # RequestEntityTooLarge is answered by serve.app
    except HTTPException:
        raise
    except _UNREADABLE as error:  # gunicorn's, of chunks or trailers that are none
        raise Problem("bad-request", "the body cannot be read to its end") from error
    if len(data) < (request.content_length or 0):
        raise Problem("bad-request", "the body is shorter than its Content-Length")
    if len(data) > limit:
        raise Problem("too-large", f"this operation takes {limit} bytes")
    try:
        return model.model_validate_json(data)
    except ValidationError as error:
        raise invalid_body(error, data) from None


def invalid_body(error: ValidationError, data: bytes) -> Problem:
    """The problem that a failed validation of a JSON text is."""
    faults = error.errors(include_url=False, include_context=False, include_input=False)
    if faults[0]["type"] == "json_invalid":
        return Problem("not-json", str(faults[0]["msg"])[:200])
    whole = from_json(data)
    errors = [
        (_pointer(fault["loc"], whole), fault["type"], str(fault["msg"])[:200])
        for fault in faults[: limits.JSON_ERRORS]
    ]
    pointer, code, detail = errors[0]
    kind = "illegal-action" if code == "illegal_action" else "invalid-body"
    more = f" (and {len(faults) - 1} more)" if len(faults) > 1 else ""
    return Problem(kind, f"{pointer or 'body'}: {detail}{more}", errors=errors)


def _pointer(location: Sequence[int | str], data: Any) -> str:
    """An RFC 6901 pointer from pydantic's location, less its names of a union's branches."""
    parts: list[str | int] = []
    for place, part in enumerate(location):
        if isinstance(data, Mapping) and part in data:
            data = data[str(part)]
        elif isinstance(data, list) and isinstance(part, int) and part < len(data):
            data = data[part]
        elif not (isinstance(data, Mapping) and place == len(location) - 1):
            continue  # a branch's name; the last part of a missing field stays
        parts.append(part)
    return pointer_to(*parts)


def _plain(value: Any) -> Any:
    """What json cannot write as something that it can; numpy numbers above all."""
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, Decimal):
        return float(value)
    raise TypeError(f"{type(value).__name__} is not JSON")


def to_json(data: Any) -> str:
    """JSON text of plain data and numpy numbers; ASCII, so that any string in it is safe.

    Raises:
        ValueError: a NaN or an infinity, which JSON does not have.
    """
    return json.dumps(data, default=_plain, allow_nan=False, separators=(",", ":"))


def plain_to_json(data: Any) -> str:
    """`to_json` of Python's own types and numpy numbers, at a quarter of its cost."""
    try:
        text = write_json(data, fallback=_plain)
    except PydanticSerializationError:
        return to_json(data)  # which says what it is
    if not text.isascii() or b"NaN" in text or b"Infinity" in text:
        return to_json(data)  # which escapes, or refuses
    return text.decode("ascii")


def json_response(
    data: Any, *, model: type[BaseModel] | None = None, status: int = 200, plain: bool = False
) -> Response:
    """An answer; plain data are as `operation` has it. In tests it is compared with its model."""
    text = plain_to_json(data) if plain else to_json(data)
    if model is not None and current_app.testing:
        model.model_validate_json(text)
    return Response(text, status=status, mimetype="application/json")


def problem_response(problem: Problem) -> Response:
    """A problem as an answer."""
    response = Response(
        to_json(problem.to_json(request.path, g.get("request_id", ""))),
        status=problem.status,
        mimetype="application/problem+json",
    )
    response.headers.extend(problem.headers)
    return response
