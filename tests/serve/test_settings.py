"""Settings: each is a flag and a variable of the environment, and what is wrong is named."""

from __future__ import annotations

import dataclasses
import os
from pathlib import Path
from typing import Any

import pytest

from serve import cli, create_app
from serve.settings import MATH_THREADS, METRICS_VARIABLE, Settings, host_name, one_math_thread
from skipbo_env.cli import run

VALUES: dict[str, tuple[str, Any]] = {
    "host": ("0.0.0.0", "0.0.0.0"),
    "port": ("8123", 8123),
    "agent": ("greedy", "greedy"),
    "models_dir": ("some/models", Path("some/models")),
    "database_url": ("sqlite:///a,b.db", "sqlite:///a,b.db"),
    "workers": ("3", 3),
    "threads": ("12", 12),
    "searches": ("2", 2),
    "cors_origin": ("https://a.example, https://b.example", ("https://a.example", "https://b.example")),
    "trusted_host": ("a.example,", ("a.example",)),
    "max_games": ("77", 77),
    "keep_days": ("0.5", 0.5),
    "rate_limit": ("2.5", 2.5),
    "proxies": ("1", 1),
    "metrics_dir": ("some/counts", Path("some/counts")),
    "log": ("true", True),
}  # fmt: skip
VARIABLES = {field.name: field.metadata["variable"] for field in dataclasses.fields(Settings)}


@pytest.fixture(autouse=True)
def _clean(monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in VARIABLES.values():
        monkeypatch.delenv(variable, raising=False)


def test_every_setting_is_a_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    assert set(VALUES) == set(VARIABLES)
    default = Settings()
    for name, (text, value) in VALUES.items():
        assert getattr(default, name) != value
        monkeypatch.setenv(VARIABLES[name], text)
    assert dataclasses.asdict(Settings()) == {name: value for name, (_, value) in VALUES.items()}
    for variable in VARIABLES.values():
        monkeypatch.setenv(variable, " ")  # as none
    assert Settings() == default


def test_every_setting_is_a_flag_that_goes_before_the_variable(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    got: list[Settings] = []
    monkeypatch.setattr(cli, "run", lambda settings: got.append(settings) or 0)
    words: list[str] = []
    for name, (text, value) in VALUES.items():
        flag = f"--{name.replace('_', '-')}"
        words += [flag, *(value if isinstance(value, tuple) else () if value is True else (text,))]
    monkeypatch.setenv("SKIPBO_PORT", "9999")
    assert run(cli.serve, "serve", words) == 0
    assert dataclasses.asdict(got[0]) == {name: value for name, (_, value) in VALUES.items()}
    assert run(cli.serve, "serve", []) == 0
    assert got[1].port == 9999


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("port", "70000"),
        ("port", "eighty"),
        ("workers", "0"),
        ("searches", "0"),
        ("rate_limit", "0"),
        ("rate_limit", "nan"),
        ("keep_days", "-1"),
        ("proxies", "-1"),
        ("max_games", "0"),
        ("log", "perhaps"),
    ],
)
def test_what_is_wrong_is_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], name: str, text: str
) -> None:
    with pytest.raises(ValueError, match=f"^{name}: "):
        Settings(**{name: text})
    monkeypatch.setenv(VARIABLES[name], text)
    with pytest.raises(ValueError, match=f"^{VARIABLES[name]}: "):
        Settings()
    assert run(cli.serve, "serve", []) == 2
    assert VARIABLES[name] in capsys.readouterr().err


def test_too_few_threads_for_the_searches_are_named(fakes: None) -> None:
    with pytest.raises(ValueError, match="threads"):
        create_app(testing=True, settings=Settings(threads=3, searches=1))


def test_settings_reach_another_process(monkeypatch: pytest.MonkeyPatch) -> None:
    environment = {"SKIPBO_AGENT": "simple", METRICS_VARIABLE: "/x", "HOME": "/root"}
    Settings().export(environment)  # also that these are not set
    assert environment == {"HOME": "/root"}
    settings = Settings(**{name: value for name, (_, value) in VALUES.items()})
    settings.export(environment)
    for variable, text in environment.items():
        monkeypatch.setenv(variable, text)
    assert Settings() == settings


def test_on_loopback_only_its_own_names_are_trusted() -> None:
    assert set(map(host_name, Settings().hosts)) == {"127.0.0.1", "localhost", "[::1]"}
    assert host_name("Bücher.Example.") == host_name("xn--BCHER-kva.example")
    assert Settings(host="0.0.0.0").hosts == ()
    assert Settings(trusted_host=("a.example",)).hosts == ("a.example",)


def test_one_math_thread_unless_told_otherwise(monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in MATH_THREADS:
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("OMP_NUM_THREADS", "5")
    one_math_thread()
    assert {variable: os.environ[variable] for variable in MATH_THREADS} == {
        "OMP_NUM_THREADS": "5",
        "OPENBLAS_NUM_THREADS": "1",
        "MKL_NUM_THREADS": "1",
        "NUMBA_NUM_THREADS": "1",
    }
