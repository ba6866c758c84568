"""MkDocs' hook: pages from outside docs/, the page of HTTP calls, and links that fit both places.

The README, the changelog and their like stand at the root of the repository, where code hosts look
for them; model cards beside their weights. The site shows the same files. A link is written for the
repository, and is turned here into one between pages of the site.
"""

from __future__ import annotations

import json
import posixpath
import re
import sys
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from serve.docs import page as api_page  # noqa: E402 - from this checkout, installed or not

# Path in the repository -> path on the site.
PAGES = {
    "README.md": "index.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "security.md",
    "CITATION.cff": "CITATION.cff",
    "LICENSE": "LICENSE",
    "NOTICE": "NOTICE",
    "models/README.md": "models/index.md",
}
for model in sorted(ROOT.glob("models/*/")):
    for file in sorted(model.iterdir()):
        if file.suffix in (".md", ".png", ".json"):
            where = file.relative_to(ROOT).as_posix()
            PAGES[where] = where
SOURCES = {shown: path for path, shown in PAGES.items()}

CODE = re.compile(r"(^```.*?^```$|`[^`\n]+`)", re.MULTILINE | re.DOTALL)
LINK = re.compile(r'(?P<before>\]\(|src=")(?P<to>[^)\s"#:]+)(?=[)\s"#])')


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add what does not lie in docs/."""
    for path, shown in PAGES.items():
        files.append(File.generated(config, shown, abs_src_path=str(ROOT / path)))
    document = json.loads((ROOT / "docs" / "openapi.json").read_text(encoding="utf-8"))
    found = re.search(r"<h1>.*?</h1>(.*)</main>", api_page(document), re.DOTALL)
    assert found, "serve/docs.py has no heading"
    body = found[1].replace('href="/v1/openapi.json"', 'href="openapi.json"')
    files.append(File.generated(config, "api.md", content=f"# HTTP calls\n\n<div>{body}</div>\n"))
    return files


def on_page_markdown(markdown: str, page: Page, **_: Any) -> str:
    """Turn links between files of the repository into links between pages of the site."""
    shown = page.file.src_uri
    source = SOURCES.get(shown, f"docs/{shown}")

    def moved(found: re.Match[str]) -> str:
        target = posixpath.normpath(posixpath.join(posixpath.dirname(source), found["to"]))
        target = PAGES.get(target, target.removeprefix("docs/"))
        return found["before"] + posixpath.relpath(target, posixpath.dirname(shown) or ".")

    parts = CODE.split(markdown)
    parts[::2] = [LINK.sub(moved, part) for part in parts[::2]]
    return "".join(parts)
