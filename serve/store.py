"""Games, matches and reviews in a database: SQLite unless a URL names another, such as PostgreSQL.

A row holds one of them as JSON that this module does not look into, and a revision that goes
up with every change: whoever changes a row says which revision that was made from, and of two who
started from the same one only the first succeeds. So nobody holds a lock while agents think.

In SQLite every write begins with BEGIN IMMEDIATE, since a transaction that reads first and then
writes is refused at once where another is writing, whatever its timeout. With WAL and synchronous
NORMAL a killed process loses nothing that was committed; a power cut may lose the last moves.
"""

from __future__ import annotations

import json
import logging
import secrets
import sqlite3
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from platformdirs import user_data_path
from sqlalchemy import exc

from serve.problems import Problem

LOG = logging.getLogger("serve")
IN_MEMORY = "sqlite://"
RETRY_AFTER_S = 5
LOCK_WAIT_S = 5.0
_LOCK_KEY = 0x5B0  # PostgreSQL's advisory lock of this project, held while tables are made

_METADATA = sa.MetaData()
_VERSION = sa.Table("schema_version", _METADATA, sa.Column("version", sa.Integer, nullable=False))


def _table(name: str, most: int | None = None) -> sa.Table:
    """A kind of thing that is kept; `most` caps it below what the settings say."""
    return sa.Table(
        name,
        _METADATA,
        sa.Column("id", sa.String(32), primary_key=True),
        sa.Column("revision", sa.Integer, nullable=False),
        sa.Column("open", sa.Boolean(create_constraint=False), nullable=False),
        sa.Column("engine", sa.String(32), nullable=False),
        sa.Column("created", sa.Float, nullable=False),
        sa.Column("updated", sa.Float, nullable=False),
        sa.Column("data", sa.Text, nullable=False),
        sa.Index(f"{name}_updated", "updated"),
        sa.Index(f"{name}_open_updated", "open", "updated"),
        info={"most": most},
    )


GAMES = _table("games")
MATCHES = _table("matches")
_ONE_OF = {"games": "game", "matches": "match", "reviews": "review"}
REVIEWS = _table("reviews", most=200)  # up to a megabyte each

# The schema's history: step k makes version k + 1 of version k. Steps are added, never edited;
# once a table has changed, the steps before that change have to say in SQL what they made.
STEPS: tuple[Callable[[sa.Connection], None], ...] = (
    lambda connection: GAMES.create(connection),
    lambda connection: MATCHES.create(connection),
    lambda connection: REVIEWS.create(connection),
)


class SchemaError(ValueError):
    """The database was made by a newer version of this program."""


def default_url() -> str:
    """The SQLite file in the user's data directory."""
    folder = user_data_path("skipbo_env", appauthor=False)
    return sa.URL.create("sqlite", database=str(folder / "games.db")).render_as_string()


class Store:
    """The database. It is connected to when it is first needed.

    Args:
        url: SQLAlchemy's; `IN_MEMORY` forgets all with the process.
        engine: the version of the program, written beside each row.
        max_open: games that may be open, and as many ended ones are kept; the same of matches.
        keep_days: days after its last change that a row is kept.

    Raises:
        ValueError: a URL that is none, or whose driver is not installed.
    """

    def __init__(
        self, url: str, *, engine: str, max_open: int = 10_000, keep_days: float = 30.0
    ) -> None:
        self.max_open = max_open
        self._version = engine
        self._keep_s = 86_400 * keep_days
        self._prepared = False
        self._preparing = threading.Lock()
        try:
            self._engine = _connect(sa.make_url(url))
        except (exc.ArgumentError, ImportError) as error:
            raise ValueError(f"database_url: {error}") from None
        weakref.finalize(self, self._engine.dispose)

    def prepare(self) -> None:
        """Make the tables, or bring older ones up to date.

        Raises:
            SchemaError: a newer program made them.
            Problem: "storage".
        """
        with self._preparing:
            if self._prepared:
                return
            with _faults():
                if self._engine.dialect.name == "sqlite" and (file := self._engine.url.database):
                    Path(file).parent.mkdir(parents=True, exist_ok=True)
                with self._engine.begin() as connection:
                    _migrate(connection)
            self._prepared = True

    @contextmanager
    def _begin(self, *, write: bool) -> Iterator[sa.Connection]:
        if not self._prepared:
            self.prepare()
        with _faults(), self._engine.connect() as connection:
            connection = connection.execution_options(skipbo_read=not write)
            with connection.begin():
                yield connection

    def add(self, table: sa.Table, data: Any, *, is_open: bool = True) -> str:
        """Keep something new; returns its id, which nobody can guess.

        What has expired goes first, and of ended ones the oldest beyond `max_open`.

        Raises:
            Problem: "too-many-games", "storage".
        """
        now = time.time()
        key = secrets.token_urlsafe(16)
        with self._begin(write=True) as connection:
            self._sweep(connection, table, now)
            most = self._most(table)
            if is_open and self._count(connection, table, True) >= most:
                raise Problem(
                    "too-many-games",
                    f"{most} {table.name} are open",
                    headers={"Retry-After": "60"},
                )
            connection.execute(
                table.insert().values(
                    id=key,
                    revision=0,
                    open=is_open,
                    engine=self._version,
                    created=now,
                    updated=now,
                    data=_text(data),
                )
            )
        return key

    def get(self, table: sa.Table, key: str) -> tuple[Any, int]:
        """What is kept under an id, and its revision.

        Raises:
            Problem: "not-found", "storage".
        """
        query = sa.select(table.c.data, table.c.revision).where(
            table.c.id == key, table.c.updated > time.time() - self._keep_s
        )
        row = None
        if "\0" not in key and key.isascii():  # PostgreSQL refuses such texts
            with self._begin(write=False) as connection:
                row = connection.execute(query).first()
        if row is None:
            raise Problem("not-found", f"no such {_ONE_OF[table.name]}")
        return json.loads(row.data), int(row.revision)

    def put(
        self, table: sa.Table, key: str, data: Any, revision: int, *, is_open: bool = True
    ) -> bool:
        """Change what is kept; False, and nothing is changed, where it is no longer at `revision`.

        Raises:
            Problem: "storage".
        """
        change = (
            table.update()
            .where(table.c.id == key, table.c.revision == revision)
            .values(
                revision=revision + 1,
                open=is_open,
                engine=self._version,
                updated=time.time(),
                data=_text(data),
            )
        )
        with self._begin(write=True) as connection:
            return connection.execute(change).rowcount == 1

    def count_open(self, table: sa.Table) -> int:
        """How many are open.

        Raises:
            Problem: "storage".
        """
        with self._begin(write=False) as connection:
            return self._count(connection, table, True)

    def close(self) -> None:
        """Close all connections."""
        self._engine.dispose()

    def _most(self, table: sa.Table) -> int:
        return min(self.max_open, table.info["most"] or self.max_open)

    @staticmethod
    def _count(connection: sa.Connection, table: sa.Table, is_open: bool) -> int:
        query = sa.select(sa.func.count()).select_from(table).where(table.c.open == is_open)
        return int(connection.execute(query).scalar_one())

    def _sweep(self, connection: sa.Connection, table: sa.Table, now: float) -> None:
        connection.execute(table.delete().where(table.c.updated <= now - self._keep_s))
        if self._count(connection, table, False) > self._most(table):
            oldest = (
                sa.select(table.c.updated)
                .where(table.c.open == sa.false())
                .order_by(table.c.updated.desc())
                .offset(self._most(table))
                .limit(1)
                .scalar_subquery()
            )
            connection.execute(
                table.delete().where(table.c.open == sa.false(), table.c.updated <= oldest)
            )


def _text(data: Any) -> str:
    return json.dumps(data, separators=(",", ":"))


def _connect(url: sa.URL) -> sa.Engine:
    """An engine whose transactions do as the head of this module says."""
    if url.drivername == "postgresql":  # SQLAlchemy 2.0 would look for psycopg 2
        url = url.set(drivername="postgresql+psycopg")
    if url.get_backend_name() != "sqlite":
        wait = {"connect_timeout": 5} if url.get_backend_name() == "postgresql" else {}
        return sa.create_engine(
            url, pool_pre_ping=True, pool_timeout=LOCK_WAIT_S, connect_args=wait
        )
    options: dict[str, Any] = {"check_same_thread": False, "timeout": LOCK_WAIT_S}
    if url.database in (None, "", ":memory:"):
        # One connection that all share in turn: an own one each would be an own database each.
        engine = sa.create_engine(
            url,
            connect_args=options,
            poolclass=sa.QueuePool,
            pool_size=1,
            max_overflow=0,
        )
    else:
        engine = sa.create_engine(url, connect_args=options, pool_timeout=LOCK_WAIT_S)

    @sa.event.listens_for(engine, "connect")
    def _set_up(connection: Any, record: Any) -> None:
        connection.isolation_level = None  # the driver begins nothing by itself
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("PRAGMA synchronous=NORMAL")

    @sa.event.listens_for(engine, "begin")
    def _begin(connection: sa.Connection) -> None:
        reads = connection.get_execution_options().get("skipbo_read")
        connection.exec_driver_sql("BEGIN" if reads else "BEGIN IMMEDIATE")

    return engine


@contextmanager
def _faults() -> Iterator[None]:
    """The database's faults as problems; the log has the cause, which may name files and hosts."""
    try:
        yield
    except (exc.DBAPIError, exc.TimeoutError, sqlite3.Error, OSError) as error:
        LOG.error("database: %s", getattr(error, "orig", None) or error)
        raise Problem(
            "storage",
            "games cannot be kept or read now",
            headers={"Retry-After": str(RETRY_AFTER_S)},
        ) from error


def _migrate(connection: sa.Connection) -> None:
    """Take the steps that a database lacks, all in one transaction."""
    if connection.dialect.name == "postgresql":  # other processes that start now wait here
        connection.execute(sa.select(sa.func.pg_advisory_xact_lock(_LOCK_KEY)))
    _VERSION.create(connection, checkfirst=True)
    found = connection.execute(sa.select(_VERSION.c.version)).scalar()
    if found is None:
        connection.execute(_VERSION.insert().values(version=0))
    version = int(found or 0)
    if version > len(STEPS):
        raise SchemaError(
            f"database_url: the database has version {version} of the tables, made by a newer "
            f"program; this one knows {len(STEPS)}"
        )
    for step in STEPS[version:]:
        step(connection)
    if version < len(STEPS):
        connection.execute(_VERSION.update().values(version=len(STEPS)))
