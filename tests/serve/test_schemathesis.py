"""Requests made from the OpenAPI document itself: answers must be what the document says."""

from __future__ import annotations

import pytest
import schemathesis
from flask import Flask
from hypothesis import HealthCheck, given, settings
from schemathesis import GenerationMode
from schemathesis.specs.openapi import checks

from serve.operations import OPERATIONS, Operation
from serve.store import REVIEWS

# Left out: positive_data_acceptance. That a position is possible is more than a schema can say.
CHECKS = [
    checks.status_code_conformance,
    checks.content_type_conformance,
    checks.response_schema_conformance,
]
REVIEW = {
    "status": "running", "done": 1, "total": 9, "detail": None, "analysis": None, "seen": 1e12,
}  # fmt: skip
CASES = [
    (op, mode)
    for op in OPERATIONS
    for mode in GenerationMode
    if op.body is not None or mode is GenerationMode.POSITIVE
]


@pytest.mark.parametrize(
    ("operation", "mode"), CASES, ids=[f"{op.method} {op.path} {mode.value}" for op, mode in CASES]
)
def test_the_document_is_kept(app: Flask, operation: Operation, mode: GenerationMode) -> None:
    schema = schemathesis.openapi.from_wsgi("/v1/openapi.json", app)
    described = schema[operation.template][operation.method]
    client = app.test_client()
    known = {
        "game_id": client.post("/v1/games", json={"agents": ["greedy"]}).get_json()["id"],
        "match_id": client.post("/v1/matches").get_json()["id"],
        "review_id": app.extensions["skipbo"].store.add(REVIEWS, REVIEW),
    }
    applied = list(CHECKS)
    if operation.path != "/v1/suggest/batch":  # there a bad position is a result like others
        applied.append(checks.negative_data_rejection)

    @settings(max_examples=30, deadline=None, suppress_health_check=list(HealthCheck))
    @given(case=described.as_strategy(generation_mode=mode))
    def check(case: schemathesis.Case) -> None:
        if mode is GenerationMode.POSITIVE:  # else there would hardly ever be such a game
            case.path_parameters.update({k: known[k] for k in case.path_parameters})
        response = case.call()
        assert response.status_code < 500
        case.validate_response(response, checks=applied)

    check()
