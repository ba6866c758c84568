"""`kernel`: Numba's njit with this project's options and a compile cache that cannot go stale.

Numba's own cache looks at one file only: a kernel that calls a kernel of another, edited file would
keep running the old code. So the cache's folder is named by a hash of every source in the package,
Numba's version and the CPU.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, cast

import llvmlite.binding
import numba
from numba import config
from numba.core import event
from platformdirs import user_cache_path

_Kernel = TypeVar("_Kernel", bound=Callable[..., Any])
_PACKAGE = Path(__file__).resolve().parents[1]


def source_hash(package: Path = _PACKAGE) -> str:
    """Hash of all that decides compiled code: sources, Numba's version, the CPU's features."""
    digest = hashlib.sha256()
    for path in sorted(package.rglob("*.py")):
        if b"engine.jit import" in (text := path.read_bytes()) or path.parent.name == "engine":
            digest.update(path.relative_to(package).as_posix().encode() + b"\0" + text)
    digest.update(numba.__version__.encode())
    digest.update(llvmlite.binding.get_host_cpu_name().encode())
    digest.update(llvmlite.binding.get_host_cpu_features().flatten().encode())
    return digest.hexdigest()[:16]


def cache_directory() -> Path:
    """Where kernels are kept: SKIPBO_CACHE_DIR, the user's cache folder, or a temporary one.

    Numba's cache files are pickles, so in the temporary folder only one that is closed to others
    will do; the other two are the user's to keep.
    """
    setting = os.environ.get("SKIPBO_CACHE_DIR")
    base = Path(setting) if setting else user_cache_path("skipbo_env", appauthor=False)
    user = os.getuid() if hasattr(os, "getuid") else "user"
    for root in (base, Path(tempfile.gettempdir()) / f"skipbo_env-{user}"):
        folder = root / source_hash()
        try:
            is_new = not folder.exists()
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            if root != base and not _is_private(root):
                continue  # the temporary folder is everybody's
            if os.access(folder, os.W_OK):
                if is_new:
                    _forget_old(root)
                return folder
        except OSError:
            continue
    return Path(tempfile.mkdtemp(prefix="skipbo_env-"))


def _is_private(folder: Path) -> bool:
    """Whether the folder is the user's own and closed to others."""
    if not hasattr(os, "getuid"):
        return False
    found = folder.stat(follow_symlinks=False)
    if found.st_uid == os.getuid() and found.st_mode & 0o077:
        folder.chmod(0o700)
        found = folder.stat(follow_symlinks=False)
    return found.st_uid == os.getuid() and not found.st_mode & 0o077


def _forget_old(root: Path) -> None:
    """Drop the kernels of sources and machines that nobody has compiled for in a month."""
    oldest = time.time() - 30 * 86400
    for old in root.iterdir():
        with contextlib.suppress(OSError):  # another process may be doing the same
            if re.fullmatch(r"[0-9a-f]{16}", old.name) and old.stat().st_mtime < oldest:
                shutil.rmtree(old)


_CACHE = cache_directory()


class _Announcement(event.Listener):
    """Says what the first call is waiting for, in one line, once a process.

    Numba tells of a kernel that it compiles, not of one that it finds in the cache. The line is
    also for logs and notebooks, hence no look at whether a terminal reads it.
    """

    def __init__(self) -> None:
        self.kernels: set[Callable[..., Any]] = set()
        self.made = False

    def on_start(self, event: Any) -> None:
        if not self.made and event.data["dispatcher"].py_func in self.kernels:
            self.made = True
            print(
                "skipbo: compiling what this needs of the engine, once on this machine; "
                "it may take a minute or more",
                file=sys.stderr,
                flush=True,
            )

    def on_end(self, event: Any) -> None:
        """Say nothing: another kernel may follow."""


_ANNOUNCEMENT = _Announcement()
event.register("numba:compile", _ANNOUNCEMENT)


def kernel(
    function: _Kernel | None = None,
    *,
    allocates: bool = False,
    brief: bool = False,
    **options: Any,
) -> Any:
    """Compile a function with njit: no GIL, cached, NumPy's error model, no reference counts.

    Numba counts references to every array that a kernel is given, with atomic instructions: two
    thirds of the time of a game step. A kernel that makes no arrays needs none of it, so the
    counting (Numba's NRT) is off here.

    Args:
        function: what to compile.
        allocates: whether it makes arrays or lists of its own (np.zeros, copies); without this
            Numba refuses those.
        brief: whether it takes microseconds and is called from Python, often many times in a row.
            It keeps the GIL: where several threads work, to get it back costs more than the call.
        options: for njit (fastmath, inline).
    """

    def decorate(python: _Kernel) -> _Kernel:
        # All said outright: the rest is taken over from whichever kernel is compiled around it.
        settings = {"forceinline": False, "fastmath": False, **options}
        dispatcher = numba.njit(nogil=not brief, error_model="numpy", _nrt=allocates, **settings)(
            python
        )
        if config.DISABLE_JIT:
            return python
        _ANNOUNCEMENT.kernels.add(python)
        # The folder is read when caching is switched on; put it back for the kernels of others.
        before = config.CACHE_DIR
        config.CACHE_DIR = str(_CACHE)
        try:
            dispatcher.enable_caching()
        finally:
            config.CACHE_DIR = before
        return cast(_Kernel, dispatcher)

    return decorate(function) if function is not None else decorate


def inlined(function: _Kernel) -> Any:
    """`kernel` for small functions on hot paths: their code is put into every caller."""
    return kernel(function, forceinline=True, brief=True)
