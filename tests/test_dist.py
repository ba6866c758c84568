"""What is shipped: wheel and sdist, each installed into an empty environment and used from outside
the repository. The wheel meets the pinned set of constraints.txt, the sdist the lowest versions
that pyproject.toml allows. Slow, and it needs a package index: `make test-dist`.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import urllib.request
import venv
import zipfile
from pathlib import Path
from typing import Any, NamedTuple

import pytest

ROOT = Path(__file__).parents[1]
PACKAGES = ("skipbo_env", "training", "serve")
NOTATION = (
    "- 0 368QS 12345/123456789TJ/12/- 7:12:4/T/-/-,5:20:-/-/-/- 5,5 88 "
    "1,1,1,1,1,1,1,1,1,1,0,0,2 - 0 0"
)
pytestmark = pytest.mark.slow

LOOK = """
import importlib.metadata, importlib.util, json, pathlib, sys
import skipbo_env
loaded = [name for name in ("torch", "flask", "numba") if name in sys.modules]
from skipbo_env.agents import list_agents
home = pathlib.Path(skipbo_env.__file__).parents[1]
print(json.dumps({
    "home": str(home),
    "there": [name for name in ("torch", "flask") if importlib.util.find_spec(name)],
    "loaded": loaded,
    "typed": [path.parent.name for path in sorted(home.glob("*/py.typed"))],
    "agents": [entry["name"] for entry in list_agents()],
    "classifiers": importlib.metadata.metadata("skipbo-env").get_all("Classifier"),
    "version": [skipbo_env.__version__, importlib.metadata.version("skipbo-env")],
}))
"""


class Shipped(NamedTuple):
    """What was built: from the checkout, and the wheel that the sdist gives."""

    wheel: Path
    sdist: Path
    wheel_of_sdist: Path


def call(*words: str | Path, cwd: Path, **env: str) -> str:
    """A command's standard output; what it said where it fails."""
    clean = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    done = subprocess.run(
        [str(word) for word in words], cwd=cwd, env={**clean, **env}, capture_output=True, text=True
    )
    assert done.returncode == 0, f"{words}\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
    return done.stdout


@pytest.fixture(scope="module")
def shipped(tmp_path_factory: pytest.TempPathFactory) -> Shipped:
    """Built from a copy of what git knows, so that nothing else in the checkout gets in."""
    folder = tmp_path_factory.mktemp("built")
    names = call("git", "ls-files", "-z", "-co", "--exclude-standard", cwd=ROOT)
    source = folder / "source"
    for name in filter(None, names.split("\0")):
        if (ROOT / name).is_file():
            (source / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, source / name)
    build = (
        "import sys; from setuptools import build_meta; print(build_meta.build_sdist(sys.argv[1]))"
    )
    call(sys.executable, "-c", build, folder / "dist", cwd=source)
    (sdist,) = (folder / "dist").glob("*.tar.gz")
    made = []
    for where, target in ((source, "dist"), (sdist, "again")):
        pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "wheel", "--no-deps"]
        call(*pip, "--no-build-isolation", "--wheel-dir", folder / target, where, cwd=folder)
        made += (folder / target).glob("*.whl")
    return Shipped(made[0], sdist, made[1])


def test_the_sdist_gives_the_same_wheel(shipped: Shipped) -> None:
    def contents(path: Path) -> dict[str, int]:
        with zipfile.ZipFile(path) as file:
            return {info.filename: info.CRC for info in file.infolist()}

    assert contents(shipped.wheel) == contents(shipped.wheel_of_sdist)
    shipped_names = set(contents(shipped.wheel))
    for package in PACKAGES:
        for path in (ROOT / package).rglob("*.py"):
            assert path.relative_to(ROOT).as_posix() in shipped_names
    for path in (ROOT / "serve" / "static").iterdir():
        assert f"serve/static/{path.name}" in shipped_names
    for path in (ROOT / "models").rglob("*"):
        if path.is_file():
            assert f"skipbo_env/{path.relative_to(ROOT).as_posix()}" in shipped_names
    assert not any(name.startswith(("tests/", "docs/")) for name in shipped_names)


def floors() -> str:
    """The lowest versions of what the game and the service need, as pip's constraints."""
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    lines = []
    for table in (r"^dependencies = \[(.*?)^\]", r"^serve = \[(.*?)^\]"):
        found = re.search(table, text, re.MULTILINE | re.DOTALL)
        assert found
        lines += re.findall(r'"([a-z-]+)>=([\d.]+)', found[1])
    assert len(lines) > 12
    return "\n".join(f"{name}=={version}" for name, version in lines)


@pytest.mark.parametrize("kind", ["wheel", "sdist"])
def test_installed_into_an_empty_environment(
    kind: str, shipped: Shipped, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp(kind)
    pins = folder / "constraints.txt"
    if kind == "wheel" or sys.version_info >= (3, 13):  # the lowest numba is for Python up to 3.12
        shutil.copy(ROOT / "constraints.txt", pins)
    else:
        pins.write_text(floors())
    venv.create(folder / "env", with_pip=True)
    bin_ = folder / "env" / ("Scripts" if os.name == "nt" else "bin")
    python, skipbo = bin_ / "python", bin_ / "skipbo"
    cache = {"SKIPBO_CACHE_DIR": str(folder / "cache"), "SKIPBO_DATABASE_URL": "sqlite://"}

    def install(what: str) -> None:
        pip = [python, "-m", "pip", "--disable-pip-version-check", "install", "-q", "-c", pins]
        call(*pip, what, cwd=folder)

    artifact = shipped.wheel if kind == "wheel" else shipped.sdist
    install(str(artifact))
    found = json.loads(call(python, "-c", LOOK, cwd=folder, **cache))
    assert Path(found["home"]).is_relative_to(folder)
    assert found["there"] == found["loaded"] == []
    assert set(PACKAGES) <= set(found["typed"])
    models = {path.parent.name for path in (ROOT / "models").glob("*/config.json")}
    assert models <= set(found["agents"])
    assert found["version"][0] == found["version"][1]
    here = f"{sys.version_info.major}.{sys.version_info.minor}"
    assert f"Programming Language :: Python :: {here}" in found["classifiers"]

    assert call(skipbo, "--version", cwd=folder).strip() == f"skipbo-env {found['version'][1]}"
    assert "suggest" in call(skipbo, "--help", cwd=folder)
    answer = json.loads(call(skipbo, "suggest", NOTATION, "--json", cwd=folder, **cache))
    assert answer["agent"]["model"] in models
    assert answer["moves"][0]["win"] > 0.5
    match = ["evaluate", "greedy", "--against", "simple", "--games", "4", "--json"]
    assert json.loads(call(skipbo, *match, cwd=folder, **cache))["games"] == 4
    wrong = subprocess.run([skipbo, "serve"], cwd=folder, capture_output=True, text=True)
    assert wrong.returncode == 2
    assert "skipbo-env[serve]" in wrong.stderr

    install(f"{artifact}[serve]")
    env = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    with subprocess.Popen(
        [skipbo, "serve", "--port", "0"],
        cwd=folder,
        env={**env, **cache, "PYTHONUNBUFFERED": "1"},
        stdout=subprocess.PIPE,
        text=True,
    ) as server:
        try:
            check_service(server, models)
        finally:
            server.terminate()
            assert server.wait(30) == 0
    assert json.loads(call(python, "-c", LOOK, cwd=folder, **cache))["there"] == ["flask"]


def check_service(server: subprocess.Popen[str], models: set[str]) -> None:
    """The page, its parts and a suggestion."""
    assert server.stdout is not None
    told = next(line for line in server.stdout if "http" in line)
    found = re.search(r"http://127\.0\.0\.1:\d+", told)
    assert found, told

    def get(path: str, body: Any = None) -> bytes:
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(
            found[0] + path, data=data, headers={"Content-Type": "application/json"}
        )
        with urllib.request.urlopen(request, timeout=60) as answer:
            return bytes(answer.read())

    assert b"<title>Skip-Bo table</title>" in get("/")
    for path in (ROOT / "serve" / "static").glob("*.js"):
        assert get(f"/static/{path.name}") == path.read_bytes()
    ready = json.loads(get("/readyz"))
    assert {
        entry["name"] if isinstance(entry, dict) else entry for entry in ready["models"]
    } >= models
    position = {
        "hand": ["3", "6", "8", "12", "S"],
        "building": [5, 11, 2, 0],
        "players": [
            {"stock_top": "7", "stock_size": 12, "discards": [["4"], ["10"], [], []]},
            {"stock_top": "5", "stock_size": 20, "discards": [[], [], [], []]},
        ],
        "draw_size": 88,
    }
    answer = json.loads(get("/v1/suggest", {"position": position, "top": 3}))
    assert [move["order"] for move in answer["moves"]] == [0, 1, 2]
