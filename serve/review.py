"""The review of a game: every decision of a record beside the best one.

By an agent that answers at once it is made at once. One that searches takes minutes: such a review
is made in the background, one after the other in each process, and kept in the database, so that
every process can tell how it stands.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

from flask import Flask, current_app, g

from serve import limits, schemas
from serve.operations import Later, operation
from serve.problems import Problem, field_problem, pointer_to
from serve.service import Choice, Service, check_plays, service
from serve.store import REVIEWS
from skipbo_env.analysis import analyse
from skipbo_env.record import RecordError, replay

LOG = logging.getLogger("serve")
_TELL_EVERY_S = 1.0
_LOST_AFTER_S = 120.0  # without a sign of life


@operation(
    "POST",
    "/v1/analysis",
    body=schemas.AnalysisRequest,
    returns=schemas.Analysis,
    problems=("impossible-record", "unknown-agent", "busy", "storage", "too-many-games"),
    limit=limits.ANALYSIS_BODY,
    later=schemas.Review,
)
def analyse_record(body: schemas.AnalysisRequest) -> dict[str, Any] | Later:
    """Review a game: what each decision of each player lost, and what the draws were worth.

    Every decision is judged from what its player saw. The body may also be the record itself. After
    10 seconds the review stops, says so, and holds the decisions judged so far. By an agent that
    searches it is made in the background: the answer is 202, and its Location tells how it stands.
    """
    choice = service().agents.choose(body.agent)
    try:
        with service().gate.enter():
            told = replay(body.record)
            with service().agents.lend(choice, 0, choice.budget()) as agent:
                check_plays(choice, agent, told.rules)
            if choice.costly:
                return _begin(choice, body.record, len(told.actions))
            return _review(service(), choice, body.record, g.request_id, limits.MAX_ANALYSIS_S)
    except RecordError as error:
        parts = [part for part in body.pointer.split("/") if part]
        raise field_problem(
            "impossible-record", pointer_to(*parts, *error.path), error.reason
        ) from None


@operation(
    "GET",
    "/v1/analysis/<review_id>",
    returns=schemas.Review,
    problems=("not-found", "storage"),
)
def get_review(review_id: str) -> dict[str, Any]:
    """Tell how a review in the background stands, and what it has found."""
    kept, _ = service().store.get(REVIEWS, review_id)
    if kept["status"] == "running" and time.time() - kept["seen"] > _LOST_AFTER_S:
        kept.update(status="failed", detail="the process that made it has ended; ask again")
    return {"id": review_id, **{name: kept[name] for name in _TOLD}}


_TOLD = ("status", "done", "total", "detail", "analysis")


def _review(
    state: Service,
    choice: Choice,
    record: dict[str, Any],
    request_id: str,
    time_limit_s: float,
    progress: Callable[[int, int], None] | None = None,
    place: Callable[[], AbstractContextManager[None]] | None = None,
) -> dict[str, Any]:
    """A review as it is answered."""
    with state.agents.lend(choice, 0, choice.budget()) as agent:
        judge = agent if place is None else _Patient(agent, place)
        found = analyse(record, judge, time_limit_s=time_limit_s, progress=progress)
        if found["agent"] is not None:
            found["agent"]["name"] = choice.told(agent, found["agent"]["name"])
    warnings = []
    if not found["complete"]:
        warnings.append(
            f"stopped after {time_limit_s:g} s: {len(found['decisions'])} of "
            f"{found['decisions_total']} decisions are judged"
        )
    return {"request_id": request_id, **found, "warnings": warnings}


# In the background -----------------------------------------------------------------------------


class _Patient:
    """An agent that takes a place at the gate for each decision, so that others come between."""

    def __init__(self, agent: Any, place: Callable[[], AbstractContextManager[None]]) -> None:
        self._agent = agent
        self._place = place
        self.name = agent.name
        self.method = agent.method
        if hasattr(agent, "suggest"):  # whoever reviews asks for it where there is one
            self.suggest = self._suggest

    def act(self, game: Any) -> Any:
        with self._place():
            return self._agent.act(game)

    def _suggest(self, game: Any, **options: Any) -> Any:
        with self._place():
            return self._agent.suggest(game, **options)


def _begin(choice: Choice, record: dict[str, Any], total: int) -> Later:
    """Keep a review that is to be made, and have a thread make it."""
    state = service()
    if not state.reviews.acquire(blocking=False):
        raise Problem(
            "busy",
            f"{limits.MAX_REVIEWS} reviews are waiting; try again",
            headers={"Retry-After": "30"},
        )
    kept = {"status": "running", "done": 0, "total": total, "detail": None, "analysis": None}
    try:
        key = state.store.add(REVIEWS, {**kept, "seen": time.time()})
    except Problem:
        state.reviews.release()
        raise
    # mypy's stubs hide what the proxy holds.
    app: Flask = current_app._get_current_object()  # type: ignore[attr-defined]
    work = _Work(app, key, choice, record, g.request_id, kept)
    threading.Thread(target=work.run, name="review", daemon=True).start()
    return Later({"id": key, **kept}, f"/v1/analysis/{key}")


class _Work:
    """One review in the background."""

    def __init__(
        self,
        app: Flask,
        key: str,
        choice: Choice,
        record: dict[str, Any],
        request_id: str,
        kept: dict[str, Any],
    ) -> None:
        self._app, self._key, self._choice = app, key, choice
        self._record, self._request_id, self._kept = record, request_id, kept
        self._state: Service = app.extensions["skipbo"]
        self._revision = 0
        self._told = time.monotonic()

    def run(self) -> None:
        """Make it once those before it are made."""
        try:
            while not self._state.reviewing.acquire(timeout=_TELL_EVERY_S):
                self._tell()
            try:
                self._make()
            finally:
                self._state.reviewing.release()
        except Problem as problem:  # the database is away: nobody can be told
            LOG.error("review %s: %s", self._key, problem)
        finally:
            self._state.reviews.release()

    def _make(self) -> None:
        try:
            with self._app.app_context():
                found = _review(
                    self._state,
                    self._choice,
                    self._record,
                    self._request_id,
                    limits.MAX_REVIEW_S,
                    self._progress,
                    self._state.gate.enter_patiently,
                )
        except Problem:
            raise
        except Exception:
            LOG.exception("review %s failed", self._key)
            self._tell(status="failed", detail="something went wrong; the log has this id")
        else:
            self._tell(status="done", done=len(found["decisions"]), analysis=found)

    def _progress(self, done: int, total: int) -> None:
        self._kept["done"] = done
        if time.monotonic() - self._told > _TELL_EVERY_S:
            self._tell()

    def _tell(self, **changes: Any) -> None:
        """Write down how it stands."""
        self._kept.update(changes)
        self._told = time.monotonic()
        data = {**self._kept, "seen": time.time()}
        is_open = self._kept["status"] == "running"
        self._state.store.put(REVIEWS, self._key, data, self._revision, is_open=is_open)
        self._revision += 1
