"""The OpenAPI document of all operations: `python -m serve.openapi docs/openapi.json` writes it.

docs/openapi.json is a copy for readers; a test compares it with this.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import JsonSchemaMode, models_json_schema

from serve import schemas
from serve.operations import OPERATIONS, Operation
from serve.problems import KINDS

_ABOUT = """\
Skip-Bo: ranked moves for positions, games against agents, the analysis of game records, and the \
score of matches. Probabilities are numbers from 0 to 1 and always the mover's. \
Fields may be added within /v1, never changed. Of equal keys in a JSON object the last one counts. \
X-Request-ID ([A-Za-z0-9-]{1,64}) is taken over into the answer, or made."""

_PARAMETER = re.compile(r"<(\w+)>")


def document() -> dict[str, Any]:
    """The OpenAPI 3.1 document of all operations declared so far."""
    wanted: dict[tuple[type[BaseModel], JsonSchemaMode], None] = {
        (schemas.Position, "validation"): None,
        (schemas.Problem, "serialization"): None,
    }
    for op in OPERATIONS:
        wanted[op.returns, "serialization"] = None
        if op.later is not None:
            wanted[op.later, "serialization"] = None
        if op.body is not None:
            wanted[op.body, "validation"] = None
    names, definitions = models_json_schema(
        list(wanted), ref_template="#/components/schemas/{model}"
    )
    paths: dict[str, Any] = {}
    for op in sorted(OPERATIONS, key=lambda op: op.path):
        paths.setdefault(op.template, {})[op.method.lower()] = _describe(op, names)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Skip-Bo",
            "version": "1",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
            "description": _ABOUT,
        },
        "paths": paths,
        "components": {"schemas": tidy(definitions["$defs"])},
    }


def _describe(op: Operation, names: Mapping[Any, Any]) -> dict[str, Any]:
    """One operation's entry."""
    by_status: dict[int, list[str]] = {}
    for kind in op.problems:
        by_status.setdefault(KINDS[kind].status, []).append(kind)
    responses: dict[str, Any] = {
        str(op.status): {
            "description": "The answer.",
            "content": {"application/json": {"schema": names[op.returns, "serialization"]}},
        }
    }
    if op.later is not None:
        responses["202"] = {
            "description": "It takes longer; ask at the Location.",
            "content": {"application/json": {"schema": names[op.later, "serialization"]}},
        }
    for made in {"201", "202"} & set(responses):
        responses[made]["headers"] = {
            "Location": {"description": "Where it is.", "schema": {"type": "string"}}
        }
    problem = {"$ref": "#/components/schemas/Problem"}
    for status, kinds in sorted(by_status.items()):
        responses[str(status)] = {
            "description": " ".join(f"{kind}: {KINDS[kind].meaning}" for kind in kinds),
            "content": {"application/problem+json": {"schema": problem}},
        }
    entry: dict[str, Any] = {
        "operationId": op.function.__name__,
        "summary": op.summary,
        "responses": responses,
    }
    if op.description:
        entry["description"] = op.description
    if parameters := _PARAMETER.findall(op.path):
        entry["parameters"] = [
            {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}
            for name in parameters
        ]
    if op.body is not None:
        entry["requestBody"] = {
            "required": not op.optional,
            "content": {"application/json": {"schema": names[op.body, "validation"]}},
        }
    return entry


def tidy(schema: Any) -> Any:
    """References to components in their usual form, and no titles, which repeat the names."""
    if isinstance(schema, list):
        return [tidy(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    if "$component" in schema:
        rest = {key: value for key, value in schema.items() if key not in ("$component", "title")}
        return {"$ref": f"#/components/schemas/{schema['$component']}", **rest}
    return {
        key: tidy(value)
        for key, value in schema.items()
        if not (key == "title" and isinstance(value, str))
    }


def main(path: str) -> None:
    """Write the document to a file."""
    import serve.app  # noqa: F401 - declares all operations

    text = json.dumps(document(), indent=1, ensure_ascii=False) + "\n"
    Path(path).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1])
