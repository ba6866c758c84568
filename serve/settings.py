"""Every setting of the service: a flag of `skipbo serve`, and a variable of the environment.

`Settings()` takes what the environment says, then the defaults; a flag, or an argument, goes
before both. docs/service.md has the table, made from here by tests/make_docs.py.
"""

from __future__ import annotations

import dataclasses
import os
import typing
from collections.abc import MutableMapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Annotated, Any

from annotated_types import Ge, Gt, Le
from pydantic import TypeAdapter, ValidationError

LOOPBACK = ("127.0.0.1", "localhost", "::1")
METRICS_VARIABLE = "PROMETHEUS_MULTIPROC_DIR"  # prometheus_client's own name for it
MATH_THREADS = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "NUMBA_NUM_THREADS",
)


def _setting(name: str, default: Any, meaning: str, variable: str | None = None) -> Any:
    """A field whose default a variable of the environment replaces, when it is asked for."""
    variable = variable or f"SKIPBO_{name.upper()}"

    def value() -> Any:
        text = os.environ.get(variable, "").strip()
        if not text:
            return default
        if default == ():
            return tuple(part.strip() for part in text.split(",") if part.strip())
        return _checked(variable, name, text)

    metadata = {"variable": variable, "default": default, "meaning": meaning}
    field: Any = dataclasses.field(default_factory=value, metadata=metadata)
    return field


@dataclass(frozen=True)
class Settings:
    """How the service runs.

    The metadata of each field have its meaning, the variable and the default without it.
    """

    host: str = _setting(
        "host",
        "127.0.0.1",
        "The address to listen on. 0.0.0.0 opens the service to the network.",
    )
    port: Annotated[int, Ge(0), Le(65535)] = _setting(
        "port",
        8000,
        "The port to listen on; 0 takes a free one.",
    )
    agent: str | None = _setting(
        "agent",
        None,
        "Who answers where a request names no agent; the best one unless given.",
    )
    models_dir: Path | None = _setting(  # noqa: RUF009 - makes a field
        "models_dir",
        None,
        "A directory of models beside those that ship.",
        "SKIPBO_MODELS",
    )
    database_url: str | None = _setting(
        "database_url",
        None,
        "Where games are kept, such as sqlite:///games.db or "
        "postgresql://user:password@host/name; a file in the user's data directory unless "
        "given.",
    )
    workers: Annotated[int, Ge(1), Le(256)] = _setting(
        "workers",
        1,
        "Processes. One is served by waitress, several by gunicorn, which Windows lacks.",
    )
    threads: Annotated[int, Ge(1), Le(256)] | None = _setting(
        "threads",
        None,
        "Requests that a process handles at once; unless given 8, or 32 in each of several "
        "processes, where a client that stalls holds a thread for up to 10 seconds.",
    )
    searches: Annotated[int, Ge(1), Le(64)] | None = _setting(
        "searches",
        None,
        "Costly searches that a process runs at once; one less than the cores that it has "
        "for itself unless given, but 1 to 4.",
    )
    cors_origin: tuple[str, ...] = _setting(
        "cors_origin",
        (),
        "Origins whose pages may use the service.",
    )
    trusted_host: tuple[str, ...] = _setting(
        "trusted_host",
        (),
        "Names that the Host header may have, one with a dot before it with all below it; unless "
        "given any, on loopback its own. /healthz and /readyz answer under any.",
    )
    max_games: Annotated[int, Ge(1)] = _setting(
        "max_games",
        10_000,
        "Games that may be open at once, and matches.",
    )
    keep_days: Annotated[float, Gt(0)] = _setting(
        "keep_days",
        30.0,
        "Days that games and matches are kept after their last change.",
    )
    rate_limit: Annotated[float, Gt(0)] | None = _setting(
        "rate_limit",
        None,
        "Requests a second that one client may make of each process; no limit unless given.",
    )
    proxies: Annotated[int, Ge(0), Le(16)] = _setting(
        "proxies",
        0,
        "How many proxies of your own stand before the service and tell the client's "
        "address in X-Forwarded-For.",
    )
    metrics_dir: Path | None = _setting(  # noqa: RUF009 - makes a field
        "metrics_dir",
        None,
        "A folder of its own in which several processes put their counts together; a "
        "temporary one unless given. One process needs none.",
        METRICS_VARIABLE,
    )
    log: bool = _setting(
        "log",
        False,
        "Write one line of JSON for every request to standard error.",
    )

    def __post_init__(self) -> None:
        """Check every value.

        Raises:
            ValueError: a value that the setting cannot have; the message names the setting.
        """
        for field in dataclasses.fields(self):
            value = _checked(field.name, field.name, getattr(self, field.name))
            object.__setattr__(self, field.name, value)

    def export(self, environment: MutableMapping[str, str]) -> None:
        """Set the variables that give these settings to another process."""
        for field in dataclasses.fields(self):
            value, variable = getattr(self, field.name), field.metadata["variable"]
            if value == field.metadata["default"]:
                environment.pop(variable, None)
            else:
                environment[variable] = ",".join(value) if isinstance(value, tuple) else str(value)

    @property
    def handlers(self) -> int:
        """Requests that a process handles at once."""
        return self.threads or (8 if self.workers == 1 else 32)

    @property
    def hosts(self) -> tuple[str, ...]:
        """Names that the Host header may have; none for any."""
        if self.trusted_host or self.host not in LOOPBACK:
            return self.trusted_host
        return LOOPBACK


def host_name(text: str) -> str:
    """A name of a Host header in the one form that is compared: names have no case, IPv6 addresses
    stand in brackets, other alphabets as they do on the wire.
    """
    name = text.lower().removesuffix(".")
    if name.count(":") > 1 and not name.startswith("["):
        return f"[{name}]"
    try:
        return name if name.isascii() else name.encode("idna").decode("ascii")
    except UnicodeError:
        return name


@cache
def _adapters() -> dict[str, TypeAdapter[Any]]:
    hints = typing.get_type_hints(Settings, include_extras=True)
    return {name: TypeAdapter(hint) for name, hint in hints.items()}


def _checked(told: str, name: str, value: Any) -> Any:
    """A setting's value, from text too; an error names what the caller told."""
    try:
        return _adapters()[name].validate_python(value)
    except ValidationError as error:
        message = error.errors(include_url=False)[0]["msg"]
        raise ValueError(f"{told}: {message}, got {value!r:.60}") from None


def one_math_thread() -> None:
    """Keep libraries of mathematics to one thread a process, where nobody has said otherwise.

    The work is spread over requests; more threads than cores only wait for each other. To be
    called before numpy is imported.
    """
    for variable in MATH_THREADS:
        os.environ.setdefault(variable, "1")


def prepare_metrics(folder: Path) -> None:
    """Empty a folder for the processes' counts, and have prometheus_client put them there."""
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.glob("*.db"):
        old.unlink()
    os.environ[METRICS_VARIABLE] = str(folder)
