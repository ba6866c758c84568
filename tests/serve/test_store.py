"""Keeping games and matches: transactions, migration, expiry, faults, other databases."""

from __future__ import annotations

import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from flask import Flask

from serve import create_app, store
from serve.problems import Problem
from serve.store import GAMES, IN_MEMORY, MATCHES, SchemaError, Store

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def postgres(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A PostgreSQL server of the test's own, from SKIPBO_TEST_POSTGRES or Debian's packages."""
    if url := os.environ.get("SKIPBO_TEST_POSTGRES"):
        yield url
        return
    required = bool(os.environ.get("SKIPBO_REQUIRE_POSTGRES"))
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/pg_ctl"))
    try:
        import psycopg  # noqa: F401
    except ImportError:
        found = []
    if not found:
        assert not required, "PostgreSQL or psycopg is missing"
        pytest.skip("no PostgreSQL server, or no psycopg, on this machine")
    folder = tmp_path_factory.mktemp("pg")
    user = ["runuser", "-u", "postgres", "--"] if os.getuid() == 0 else []
    if user:  # the server refuses to run as root
        folder = Path("/tmp") / f"skipbo-pg-{os.getpid()}"  # noqa: S108
        folder.mkdir(mode=0o700)
        shutil.chown(folder, "postgres")
    binaries = found[-1].parent

    def call(*words: str) -> None:
        subprocess.run([*user, *words], cwd="/", check=True, stdout=subprocess.DEVNULL, timeout=60)

    call(f"{binaries}/initdb", "-D", f"{folder}/data", "-U", "skipbo", "-A", "trust", "-N")
    options = f"-c listen_addresses= -c unix_socket_directories={folder} -c fsync=off"
    start = ["-D", f"{folder}/data", "-l", f"{folder}/log", "-o", options, "-w", "start"]
    call(f"{binaries}/pg_ctl", *start)
    try:
        yield f"postgresql://skipbo@/postgres?host={folder}"
    finally:
        call(f"{binaries}/pg_ctl", "-D", f"{folder}/data", "-m", "immediate", "stop")
        shutil.rmtree(folder)


@pytest.fixture(
    params=["memory", "file", pytest.param("postgres", marks=pytest.mark.postgres)],
)
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "memory":
        return IN_MEMORY
    if request.param == "file":
        return f"sqlite:///{tmp_path}/a folder/games.db"
    url: str = request.getfixturevalue("postgres")
    engine = store._connect(sa.make_url(url))
    with engine.begin() as connection:
        store._METADATA.drop_all(connection)
    engine.dispose()
    return url


@pytest.fixture
def kept(url: str) -> Iterator[Store]:
    made = Store(url, engine="1.0", max_open=3)
    yield made
    made.close()


def test_what_is_kept_comes_back(kept: Store) -> None:
    key, other = kept.add(GAMES, {"a": [1, "ä"]}), kept.add(GAMES, {})
    assert len(key) == 22
    assert key != other
    assert kept.get(GAMES, key) == ({"a": [1, "ä"]}, 0)
    assert kept.put(GAMES, key, {"a": 2}, 0)
    assert kept.get(GAMES, key) == ({"a": 2}, 1)
    assert not kept.put(GAMES, key, {"a": 3}, 0)
    assert kept.get(GAMES, key) == ({"a": 2}, 1)
    for nothing in ("", key + "x", key[:-1], "' or 1=1", "\0", "ä", "\ud800"):
        with pytest.raises(Problem, match="not-found"):
            kept.get(GAMES, nothing)
        assert not kept.put(MATCHES, key, {}, 1)
    with pytest.raises(Problem, match="not-found"):
        kept.get(MATCHES, key)


def test_open_ones_are_capped_and_old_ended_ones_go(kept: Store) -> None:
    keys = [kept.add(GAMES, k) for k in range(3)]
    with pytest.raises(Problem, match="too-many-games") as raised:
        kept.add(GAMES, 3)
    assert raised.value.headers["Retry-After"]
    assert kept.count_open(GAMES) == 3
    kept.add(MATCHES, {})
    for key in keys:
        assert kept.put(GAMES, key, "ended", 0, is_open=False)
    assert kept.count_open(GAMES) == 0
    more = []
    for k in range(4):
        more.append(kept.add(GAMES, k))
        assert kept.put(GAMES, more[-1], "ended", 0, is_open=False)
        time.sleep(0.002)
    kept.add(GAMES, "last")
    for key in (keys[0], keys[1], keys[2], more[0]):
        with pytest.raises(Problem, match="not-found"):
            kept.get(GAMES, key)
    assert [kept.get(GAMES, key)[0] for key in more[1:]] == ["ended"] * 3


def test_what_nobody_touches_expires(url: str) -> None:
    kept = Store(url, engine="1.0", keep_days=1.5 / 86_400)
    old, used = kept.add(GAMES, "old"), kept.add(GAMES, "used")
    time.sleep(1.0)
    assert kept.put(GAMES, used, "used again", 0)
    time.sleep(0.7)
    with pytest.raises(Problem, match="not-found"):
        kept.get(GAMES, old)
    assert kept.get(GAMES, used) == ("used again", 1)
    kept.add(GAMES, "new")
    with kept._begin(write=False) as connection:
        left = set(connection.execute(sa.select(GAMES.c.id)).scalars())
    assert old not in left
    assert used in left
    kept.close()


def test_of_many_writers_one_wins(kept: Store) -> None:
    key = kept.add(GAMES, 0)
    won: list[int] = []
    lost: list[int] = []

    def write(worker: int) -> None:
        for _ in range(20):
            data, revision = kept.get(GAMES, key)
            (won if kept.put(GAMES, key, data + 1, revision) else lost).append(worker)

    threads = [threading.Thread(target=write, args=(k,)) for k in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(won) + len(lost) == 120
    assert kept.get(GAMES, key) == (len(won), len(won))


def test_an_older_database_is_brought_up_to_date(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if url == IN_MEMORY:
        pytest.skip("forgets all")
    steps = store.STEPS
    monkeypatch.setattr(store, "STEPS", steps[:1])
    old = Store(url, engine="0.9")
    key = old.add(GAMES, {"kept": True})
    with pytest.raises(Problem, match="storage"):
        old.add(MATCHES, {})
    old.close()
    monkeypatch.setattr(store, "STEPS", steps)
    ready = threading.Barrier(4)
    faults: list[Exception] = []

    def start() -> None:
        try:
            new = Store(url, engine="1.0")
            ready.wait()
            new.prepare()
            new.close()
        except Exception as fault:
            faults.append(fault)

    threads = [threading.Thread(target=start) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not faults
    new = Store(url, engine="1.0")
    assert new.get(GAMES, key) == ({"kept": True}, 0)
    assert new.get(MATCHES, new.add(MATCHES, 1)) == (1, 0)
    with new._begin(write=False) as connection:
        versions = connection.execute(sa.select(store._VERSION.c.version)).scalars().all()
    assert versions == [len(steps)]
    new.close()
    monkeypatch.setattr(store, "STEPS", steps[:1])
    old = Store(url, engine="0.9")
    with pytest.raises(SchemaError, match="newer"):
        old.prepare()
    old.close()


@pytest.mark.parametrize(
    "url", ["", "nonsense", "mysql+nodriver://x/y", "postgresql+nodriver://", "sqlite:///\0"]
)
def test_a_url_that_is_none_is_refused(url: str) -> None:
    with pytest.raises((ValueError, Problem)):
        Store(url, engine="1").prepare()


def test_sqlite_is_set_as_it_should(tmp_path: Path) -> None:
    kept = Store(f"sqlite:///{tmp_path}/games.db", engine="1")
    key = kept.add(GAMES, {})
    with kept._begin(write=False) as connection:
        assert connection.exec_driver_sql("PRAGMA journal_mode").scalar() == "wal"
        assert connection.exec_driver_sql("PRAGMA synchronous").scalar() == 1
    # A write waits for its turn before it reads, so that it is not refused when it writes.
    begun: list[str] = []
    sa.event.listen(
        kept._engine, "before_cursor_execute", lambda c, cur, text, *rest: begun.append(text)
    )
    kept.put(GAMES, key, {}, 0)
    kept.get(GAMES, key)
    assert [text for text in begun if text.startswith("BEGIN")] == ["BEGIN IMMEDIATE", "BEGIN"]
    kept.close()


def test_the_default_is_a_file_of_the_users_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store, "user_data_path", lambda *names, **kw: tmp_path / "data")
    kept = Store(store.default_url(), engine="1")
    kept.add(GAMES, {})
    kept.close()
    assert (tmp_path / "data" / "games.db").is_file()


@pytest.fixture
def file_app(fakes: None, tmp_path: Path) -> Iterator[Flask]:
    app = create_app(testing=True, database_url=f"sqlite:///{tmp_path}/games.db")
    yield app
    app.extensions["skipbo"].store.close()


def assert_storage_fault(response: Any) -> None:
    assert response.status_code == 503, response.text
    assert response.mimetype == "application/problem+json"
    assert response.get_json()["type"] == "/problems/storage"
    assert response.headers["Retry-After"]
    assert ".db" not in response.text


def test_a_full_disk_is_a_503_and_loses_nothing(file_app: Flask) -> None:
    kept: Store = file_app.extensions["skipbo"].store
    client = file_app.test_client()
    game = client.post("/v1/games", json={"agents": ["greedy"]}).get_json()

    def limit(connection: Any, record: Any, proxy: Any) -> None:
        connection.execute("PRAGMA max_page_count=1")  # SQLite makes it the size it has

    sa.event.listen(kept._engine, "checkout", limit)
    answers = [client.post("/v1/games", json={"agents": ["greedy"]}) for _ in range(20)]
    refused = [response for response in answers if response.status_code != 201]
    assert refused
    for response in refused:
        assert_storage_fault(response)
    assert client.get(f"/v1/games/{game['id']}").get_json() == game
    assert client.get("/healthz").status_code == 200
    sa.event.remove(kept._engine, "checkout", limit)
    with kept._engine.connect() as connection:
        connection.exec_driver_sql("PRAGMA max_page_count=1000000")
    assert client.post("/v1/games", json={"agents": ["greedy"]}).status_code == 201


def test_a_locked_database_is_a_503(
    fakes: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store, "LOCK_WAIT_S", 0.05)
    client = create_app(testing=True, database_url=f"sqlite:///{tmp_path}/games.db").test_client()
    game = client.post("/v1/games", json={"agents": ["greedy"]}).get_json()
    move = {"ply": game["ply"], "action": game["legal"][0]["action"]}
    lock = sqlite3.connect(tmp_path / "games.db", isolation_level=None)
    lock.execute("BEGIN IMMEDIATE")
    assert_storage_fault(client.post(f"/v1/games/{game['id']}/moves", json=move))
    assert_storage_fault(client.post("/v1/matches"))
    assert client.get(f"/v1/games/{game['id']}").get_json() == game  # reading is not kept waiting
    lock.execute("ROLLBACK")
    lock.close()
    assert client.post(f"/v1/games/{game['id']}/moves", json=move).status_code == 200


def test_without_a_database_suggestions_are_answered(
    fakes: None, tmp_path: Path, position: dict[str, Any]
) -> None:
    (tmp_path / "file").write_text("no folder")
    url = f"sqlite:///{tmp_path}/file/games.db"
    client = create_app(testing=True, database_url=url).test_client()
    assert client.get("/readyz").status_code == 200
    assert client.post("/v1/suggest", json={"position": position}).status_code == 200
    for path in ("/v1/games", "/v1/matches"):
        assert_storage_fault(client.post(path, json={}))
    (tmp_path / "file").unlink()
    assert client.post("/v1/matches").status_code == 201  # as soon as it can be had


def test_a_file_that_is_no_database_is_a_503(fakes: None, tmp_path: Path) -> None:
    (tmp_path / "games.db").write_bytes(b"no database at all" * 100)
    url = f"sqlite:///{tmp_path}/games.db"
    client = create_app(testing=True, database_url=url).test_client()
    assert_storage_fault(client.post("/v1/games", json={}))


def test_a_game_of_another_version_is_410(file_app: Flask) -> None:
    kept: Store = file_app.extensions["skipbo"].store
    client = file_app.test_client()
    for data in ({}, [], {"version": 99}, {"version": 1, "game": {}, "seats": [], "agents": []}):
        key = kept.add(GAMES, data)
        response = client.get(f"/v1/games/{key}")
        assert response.status_code == 410
        assert response.get_json()["type"] == "/problems/unreadable-game"
        assert client.get(f"/v1/matches/{kept.add(MATCHES, {'games': 5})}").status_code == 410
    for table, path in ((GAMES, "games"), (MATCHES, "matches")):
        key = kept.add(table, {})
        with kept._engine.begin() as connection:  # a disk's fault, or somebody's hand
            connection.execute(sa.update(table).where(table.c.id == key).values(data='{"ver'))
        assert client.get(f"/v1/{path}/{key}").status_code == 410
    assert client.get("/v1/matches/nothing").get_json()["detail"] == "no such match"


PLAYER = """
import sys
sys.path.insert(0, {root!r})
from serve import create_app
client = create_app(agent="greedy", testing=True, database_url={url!r}).test_client()
while True:
    game = client.post("/v1/games", json={{"agents": ["greedy"]}}).get_json()
    while game["status"] == "running":
        move = {{"ply": game["ply"], "action": game["legal"][-1]["action"]}}
        game = client.post(f"/v1/games/{{game['id']}}/moves", json=move).get_json()
        print(game["id"], game["ply"], flush=True)
"""


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="POSIX signals")
def test_a_killed_process_loses_no_acknowledged_move(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/games.db"
    with subprocess.Popen(
        [sys.executable, "-c", PLAYER.format(root=str(ROOT), url=url)],
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
    ) as player:
        assert player.stdout is not None
        told = [player.stdout.readline() for _ in range(60)]
        player.kill()
        told += player.stdout.read().split("\n")[:-1]
    key, ply = told[-1].split()
    app = create_app(agent="greedy", testing=True, database_url=url)
    client = app.test_client()
    game = client.get(f"/v1/games/{key}").get_json()
    assert game["ply"] >= int(ply)
    # The kill may have come when the game was just over.
    assert bool(game["legal"]) == (game["status"] == "running")
    app.extensions["skipbo"].store.close()
    check = sqlite3.connect(tmp_path / "games.db")
    assert check.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    check.close()
