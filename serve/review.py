"""The review of a game: every decision of a record beside the best one."""

from __future__ import annotations

from typing import Any

from flask import g

from serve import limits, schemas
from serve.operations import operation
from serve.problems import field_problem
from serve.service import service
from skipbo_env.analysis import analyse
from skipbo_env.record import RecordError
from skipbo_env.rules import Rules, RulesError


@operation(
    "POST",
    "/v1/analysis",
    body=schemas.AnalysisRequest,
    returns=schemas.Analysis,
    problems=("impossible-record", "unknown-agent", "busy"),
    limit=limits.ANALYSIS_BODY,
)
def analyse_record(body: schemas.AnalysisRequest) -> dict[str, Any]:
    """Review a game: what each decision of each player lost, and what the draws were worth.

    Every decision is judged from what its player saw. The body may also be the record itself. After
    10 seconds the review stops, says so, and holds the decisions judged so far.
    """
    choice = service().agents.choose(body.agent)
    if choice.costly:
        raise field_problem("unknown-agent", "/agent", f"{choice.name} takes too long for a review")
    with service().gate.enter(), service().agents.lend(choice, 0) as agent:
        able = getattr(agent, "plays", lambda rules: True)
        if (rules := _rules(body.record)) is not None and not able(rules):
            raise field_problem(
                "unknown-agent", "/agent", f"{choice.name} does not play the record's rules"
            )
        try:
            found = analyse(body.record, agent, time_limit_s=limits.MAX_ANALYSIS_S)
        except RecordError as error:
            pointer = body.pointer + "".join(f"/{_escaped(part)}" for part in error.path)
            raise field_problem("impossible-record", pointer, error.reason) from None
        if found["agent"] is not None:
            found["agent"]["name"] = choice.told(agent, found["agent"]["name"])
    warnings = []
    if not found["complete"]:
        warnings.append(
            f"stopped after {limits.MAX_ANALYSIS_S:g} s: {len(found['decisions'])} of "
            f"{found['decisions_total']} decisions are judged"
        )
    return {"request_id": g.request_id, **found, "warnings": warnings}


def _escaped(part: str | int) -> str:
    return str(part)[:60].replace("~", "~0").replace("/", "~1")


def _rules(record: dict[str, Any]) -> Rules | None:
    """A record's rules; None where they are none, which the replay says better."""
    try:
        return Rules.from_dict(record["rules"])
    except (RulesError, KeyError, TypeError, ValueError, RecursionError):
        return None
