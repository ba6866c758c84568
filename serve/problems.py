"""Errors as RFC 9457 problems: the table of kinds, and the exception that carries one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple


class Kind(NamedTuple):
    """One kind of problem. Its type URI is /problems/ and its name.

    Attributes:
        status: the HTTP status.
        title: what happened, the same for every problem of the kind.
        meaning: when it is sent and what to do.
    """

    status: int
    title: str
    meaning: str


KINDS: dict[str, Kind] = {
    "bad-request": Kind(400, "Bad request", "The request breaks HTTP's rules."),
    "untrusted-host": Kind(
        400,
        "Untrusted host",
        "The Host header names none of the hosts that the service answers for.",
    ),
    "not-json": Kind(
        400,
        "Not JSON",
        "The body is no JSON text, is nested too deep, or has a number without end.",
    ),
    "not-found": Kind(404, "Not found", "There is nothing at this address."),
    "method-not-allowed": Kind(
        405,
        "Method not allowed",
        "The address exists, but not for this method; see the Allow header.",
    ),
    "too-large": Kind(413, "Body too large", "The body is larger than this operation takes."),
    "unsupported-media-type": Kind(
        415,
        "Unsupported media type",
        "A body must be application/json, in UTF-8 and not compressed.",
    ),
    "invalid-body": Kind(
        422,
        "Invalid body",
        "The JSON does not fit the schema; errors has one entry for each fault.",
    ),
    "impossible-position": Kind(
        422,
        "Impossible position",
        "The position breaks the rules, cannot come from one deck, or is a game that is over.",
    ),
    "unknown-agent": Kind(
        422,
        "Unknown agent",
        "No such agent here, or an option that it does not have; see /v1/agents.",
    ),
    "illegal-action": Kind(
        422, "Illegal action", "The action is none, or not legal in this position."
    ),
    "impossible-rules": Kind(
        422, "Impossible rules", "The settings cannot be played, or not on this service."
    ),
    "impossible-record": Kind(
        422,
        "Impossible record",
        "It is no record of a game, or an event cannot follow from the deal and those before it.",
    ),
    "impossible-entry": Kind(422, "Impossible entry", "No game can end with these cards left."),
    "stale": Kind(
        409,
        "Not the current state",
        "The game or match has moved on, by a double click, a second window or a retry of what "
        "was done already; current shows how it stands.",
    ),
    "game-over": Kind(409, "Game over", "The game or match has ended; nothing can be added to it."),
    "not-over": Kind(
        409, "Not over yet", "The whole record is told once the game has ended, not before."
    ),
    "cannot-undo": Kind(
        409,
        "Cannot be undone",
        "There is nothing to take back, or hidden cards were shown since, or the turn has passed.",
    ),
    "unreadable-game": Kind(
        410, "Unreadable game", "The game was kept by a version whose games this one cannot read."
    ),
    "too-many-requests": Kind(
        429, "Too many requests", "This address asks too often; wait for Retry-After seconds."
    ),
    "internal-error": Kind(
        500, "Internal error", "A fault of the service; its log has the request id of the answer."
    ),
    "busy": Kind(
        503,
        "Busy",
        "All places for costly searches are taken; try again after Retry-After seconds.",
    ),
    "not-ready": Kind(
        503, "Not ready", "The service is starting; try again after Retry-After seconds."
    ),
    "agent-gone": Kind(
        503, "Agent gone", "An agent of this game is not here any more; the game is kept."
    ),
    "storage": Kind(
        503,
        "Storage fault",
        "The database is full, locked or away; nothing was changed. Try again after Retry-After "
        "seconds.",
    ),
    "too-many-games": Kind(
        503,
        "Too many games",
        "As many games or matches are open as the service keeps; try again after Retry-After "
        "seconds.",
    ),
    "http-error": Kind(0, "HTTP error", "Any other error of HTTP, with its own status."),
}


class Problem(Exception):
    """An error to be sent to the client.

    Args:
        kind: a key of `KINDS`.
        detail: what is wrong in this case, for people.
        errors: (pointer, code, detail) of each failing field of the body; pointers are RFC 6901.
        headers: headers to send with it.
        status: instead of the kind's.
        current: the game or match as it stands, where the request did not fit it.
    """

    def __init__(
        self,
        kind: str,
        detail: str,
        *,
        errors: Sequence[tuple[str, str, str]] = (),
        headers: Mapping[str, str] | None = None,
        status: int | None = None,
        current: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(f"{kind}: {detail}")
        self.kind = kind
        self.detail = detail
        self.errors = list(errors)
        self.headers = dict(headers or {})
        self.status = status or KINDS[kind].status
        self.current = current

    def to_json(self, instance: str, request_id: str) -> dict[str, Any]:
        """The problem as JSON data; "pointer" is the first failing field's, if there is one."""
        data: dict[str, Any] = {
            "type": f"/problems/{self.kind}",
            "title": KINDS[self.kind].title,
            "status": self.status,
            "detail": self.detail,
            "instance": instance,
            "request_id": request_id,
        }
        if self.errors:
            data["pointer"] = self.errors[0][0]
            data["errors"] = [
                {"pointer": pointer, "code": code, "detail": detail}
                for pointer, code, detail in self.errors
            ]
        if self.current is not None:
            data["current"] = self.current
        return data


def pointer_to(*parts: str | int) -> str:
    """An RFC 6901 pointer; parts are cut, since clients name some of them."""
    texts = (str(part)[:60].replace("~", "~0").replace("/", "~1") for part in parts)
    return "".join(f"/{text}" for text in texts)


def field_problem(kind: str, pointer: str, detail: str) -> Problem:
    """A problem with one field of the body."""
    return Problem(kind, f"{pointer}: {detail}", errors=[(pointer, kind, detail)])
