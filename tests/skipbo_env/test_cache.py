"""The compile cache: an edit of a kernel that another file calls is seen, and it stays private."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest

import skipbo_env
from skipbo_env.engine import jit

PACKAGE = Path(skipbo_env.__file__).parent
PROGRAM = (
    "import numpy as np; from skipbo_env.engine.rng import set_seed, next_u64;"
    "s = np.zeros(64, np.int32); set_seed(s, np.uint64(1)); print(next_u64(s))"
)


def run(root: Path, cache: Path) -> tuple[str, list[str]]:
    """What the program writes to standard output, and the lines of its standard error."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env={**os.environ, "PYTHONPATH": str(root), "SKIPBO_CACHE_DIR": str(cache)},
        cwd=cache.parent,
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.strip(), done.stderr.splitlines()


def answer(root: Path) -> str:
    return run(root, root / "cache")[0]


def test_an_edited_callee_in_another_file_is_compiled_anew(tmp_path: Path) -> None:
    """`rng.next_u64` calls `mix.mix`; Numba's own cache would keep the old `mix`."""
    shutil.copytree(PACKAGE, tmp_path / "skipbo_env", ignore=shutil.ignore_patterns("__pycache__"))
    engine = tmp_path / "skipbo_env" / "engine"
    rng = (engine / "rng.py").read_text()
    start = (
        rng.index("@kernel\ndef mix64")
        if "@kernel\ndef mix64" in rng
        else rng.index("@inlined\ndef mix64")
    )
    end = rng.index("@", start + 1)
    mix = rng[start:end].replace("@inlined", "@kernel")
    head = rng[:start]
    (engine / "mix.py").write_text(head + mix)
    (engine / "rng.py").write_text(
        head.replace(
            "from skipbo_env.engine.jit",
            "from skipbo_env.engine.mix import mix64\nfrom skipbo_env.engine.jit",
            1,
        )
        + rng[end:]
    )
    first = answer(tmp_path)
    assert answer(tmp_path) == first
    time.sleep(0.01)
    (engine / "mix.py").write_text(
        head + mix.replace("return z ^ (z >> _31)", "return z ^ (z >> _30)")
    )
    assert answer(tmp_path) != first


def test_only_a_run_that_compiles_says_so_in_one_line(tmp_path: Path) -> None:
    told, lines = run(PACKAGE.parent, tmp_path / "cache")
    assert len(lines) == 1
    assert lines[0].startswith("skipbo: compiling what this needs")
    assert run(PACKAGE.parent, tmp_path / "cache") == (told, [])


def test_a_folder_that_others_can_write_is_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not hasattr(os, "getuid"):
        pytest.skip("no owners on this system")
    monkeypatch.setenv("SKIPBO_CACHE_DIR", str(tmp_path / "file"))
    (tmp_path / "file").write_text("not a folder")
    monkeypatch.setattr(jit.tempfile, "gettempdir", lambda: str(tmp_path))
    folder = jit.cache_directory()
    assert folder.parent == tmp_path / f"skipbo_env-{os.getuid()}"
    assert stat.S_IMODE(folder.parent.stat().st_mode) == 0o700
    monkeypatch.setattr(jit, "_is_private", lambda folder: False)
    assert jit.cache_directory().parent != folder.parent


def test_old_caches_are_dropped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SKIPBO_CACHE_DIR", str(tmp_path))
    old, recent, other = tmp_path / ("0" * 16), tmp_path / ("1" * 16), tmp_path / "mine"
    for folder in (old, recent, other):
        folder.mkdir()
    os.utime(old, (0, 0))
    os.utime(other, (0, 0))
    jit.cache_directory()
    assert not old.exists()
    assert recent.exists()
    assert other.exists()
