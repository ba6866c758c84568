"""The page at /docs: every call and every object of the OpenAPI document as plain HTML.

Made here from the document itself, so that it needs no script and nothing of anybody else's.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable, Mapping
from html import escape
from typing import Any

_STYLE = """
:root { color-scheme: light dark; }
body { font: 1rem/1.5 system-ui, sans-serif; max-width: 60rem; margin: 0 auto; padding: 1rem; }
h1, h2, h3 { line-height: 1.2; }
section { border-top: 1px solid color-mix(in srgb, currentcolor 25%, transparent); }
code { font-family: ui-monospace, monospace; overflow-wrap: anywhere; }
table { border-collapse: collapse; width: 100%; }
th, td { text-align: left; vertical-align: top; padding: 0.25rem 0.75rem 0.25rem 0; }
th[scope=row] { font-weight: normal; white-space: nowrap; }
.scroll { overflow-x: auto; }
.verb { font-weight: bold; }
"""
_HASH = base64.b64encode(hashlib.sha256(_STYLE.encode()).digest()).decode()
CSP = (
    f"default-src 'none'; style-src 'sha256-{_HASH}'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'"
)
_BOUNDS = (
    ("minimum", "≥"),
    ("maximum", "≤"),
    ("minLength", "length ≥"),
    ("maxLength", "length ≤"),
    ("minItems", "items ≥"),
    ("maxItems", "items ≤"),
)


def page(document: Mapping[str, Any]) -> str:
    """The document as HTML."""
    info = document["info"]
    operations = [
        (verb, path, entry)
        for path, verbs in document["paths"].items()
        for verb, entry in verbs.items()
    ]
    schemas = document["components"]["schemas"]
    return f"""<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{escape(info["title"])} API</title>
<style>{_STYLE}</style>
<main>
<h1>{escape(info["title"])} API</h1>
<p>{escape(info["description"])}</p>
<p>For programs: <a href="/v1/openapi.json">OpenAPI {escape(document["openapi"])}</a>.</p>
<nav aria-label="Contents"><h2>Calls</h2><ul>
{"".join(_entry(*operation) for operation in operations)}
</ul></nav>
{"".join(_operation(*operation) for operation in operations)}
<h2>Objects</h2>
{"".join(_schema(name, schema) for name, schema in schemas.items())}
</main>
</html>
"""


def _entry(verb: str, path: str, entry: Mapping[str, Any]) -> str:
    target = escape(entry["operationId"])
    return (
        f'<li><a href="#call-{target}"><code>{verb.upper()} {escape(path)}</code></a> '
        f"{escape(entry['summary'])}</li>\n"
    )


def _operation(verb: str, path: str, entry: Mapping[str, Any]) -> str:
    name = escape(entry["operationId"])
    parts = [
        f'<section id="call-{name}"><h3><code><span class="verb">{verb.upper()}</span> '
        f"{escape(path)}</code></h3>\n<p>{escape(entry['summary'])}.</p>\n"
    ]
    if "description" in entry:
        parts.append(f"<p>{escape(entry['description'])}</p>\n")
    if "requestBody" in entry:
        body = entry["requestBody"]
        told = "" if body["required"] else " It may be left out."
        parts.append(f"<p>Body: {_content(body['content'])}.{told}</p>\n")
    rows = [
        f'<tr><th scope="row">{escape(status)}</th><td>{_content(response["content"])}</td>'
        f"<td>{escape(response['description'])}</td></tr>\n"
        for status, response in entry["responses"].items()
    ]
    parts.append(_table(("Status", "Answer", "When"), rows))
    return "".join(parts) + "</section>\n"


def _content(content: Mapping[str, Any]) -> str:
    return ", ".join(
        f"{_type(medium['schema'])} as <code>{escape(name)}</code>"
        for name, medium in content.items()
    )


def _schema(name: str, schema: Mapping[str, Any]) -> str:
    required = schema.get("required", ())
    rows = [
        f'<tr><th scope="row"><code>{escape(field)}</code>{"" if field in required else "?"}</th>'
        f"<td>{_type(value)}</td><td>{_about(value)}</td></tr>\n"
        for field, value in schema.get("properties", {}).items()
    ]
    table = _table(("Field", "Type", "Meaning"), rows) if rows else ""
    return (
        f'<section id="object-{escape(name)}"><h3>{escape(name)}</h3>\n'
        f"<p>{escape(schema.get('description', ''))}</p>\n{table}</section>\n"
    )


def _about(schema: Mapping[str, Any]) -> str:
    told = [escape(schema["description"])] if "description" in schema else []
    if schema.get("default") is not None:
        told.append(f"Default: <code>{escape(repr(schema['default']))}</code>.")
    return " ".join(told)


def _table(head: Iterable[str], rows: Iterable[str]) -> str:
    cells = "".join(f'<th scope="col">{escape(cell)}</th>' for cell in head)
    return (
        f'<div class="scroll"><table><thead><tr>{cells}</tr></thead>\n<tbody>\n{"".join(rows)}'
        "</tbody></table></div>\n"
    )


def _type(schema: Any) -> str:
    """A JSON schema in words."""
    if not isinstance(schema, Mapping) or not schema:
        return "anything"
    if "$ref" in schema:
        name = escape(schema["$ref"].rpartition("/")[2])
        return f'<a href="#object-{name}">{name}</a>'
    if "const" in schema:
        return f"<code>{escape(repr(schema['const']))}</code>"
    if "enum" in schema:
        return ", ".join(f"<code>{escape(repr(value))}</code>" for value in schema["enum"])
    for several in ("anyOf", "oneOf"):
        if several in schema:
            return " or ".join(dict.fromkeys(map(_type, schema[several])))
    kind = schema.get("type", "anything")
    bounds = [f"{sign} {schema[key]}" for key, sign in _BOUNDS if key in schema]
    told = escape(str(kind)) + (f" ({escape(', '.join(bounds))})" if bounds else "")
    if kind == "array":
        return f"{told} of {_type(schema.get('items'))}"
    extra = schema.get("additionalProperties")
    if kind == "object" and isinstance(extra, Mapping):
        return f"{told} of {_type(extra)}"
    return told
