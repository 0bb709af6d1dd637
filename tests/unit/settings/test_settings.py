"""Settings: precedence of sources, parsing, error messages."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from adjudge.domain.errors import InvalidInput
from adjudge.settings import DatabaseUrl, Secret, all_settings, environment_names, load


@pytest.fixture
def toml(tmp_path: Path) -> Path:
    return tmp_path / "adjudge.toml"


@pytest.fixture(autouse=True)
def _empty_working_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_documented_defaults() -> None:
    settings = load(environ={})
    jobs = settings.jobs
    assert (jobs.lease_sec, jobs.heartbeat_sec, jobs.reclaim_interval_sec, jobs.reclaim_grace_sec) == (15, 4, 2, 2)
    assert (jobs.reclaim_count, jobs.stream_maxlen, jobs.payload_ttl_sec, jobs.outbox_enabled) == (
        16,
        200_000,
        86_400,
        True,
    )
    assert (settings.judge.stdout_limit_bytes, settings.judge.stderr_limit_bytes) == (262_144, 1_048_576)
    assert settings.retry.policy().delay_ms(3, 0) == 8_000
    assert settings.database.url.reveal() == "sqlite:///var/adjudge.db"
    assert set(settings.sources.values()) == {"default"}


def test_precedence_of_sources(toml: Path) -> None:
    toml.write_text("[jobs]\nlease_sec = 30\nheartbeat_sec = 3\nreclaim_count = 5\nstream_maxlen = 5000\n")
    environ = {
        "JOB_LEASE_SEC": "40",
        "ADJUDGE_JOB_HEARTBEAT_SEC": "6",
        "JOB_HEARTBEAT_SEC": "7",
        "JOB_RECLAIM_COUNT": "",
    }
    settings = load({"server.port": 9000, "server.host": None}, environ, toml)
    assert (settings.jobs.lease_sec, settings.sources["jobs.lease_sec"]) == (40, "environment JOB_LEASE_SEC")
    assert settings.sources["jobs.heartbeat_sec"] == "environment ADJUDGE_JOB_HEARTBEAT_SEC"
    assert settings.jobs.heartbeat_sec == 6
    assert (settings.jobs.reclaim_count, settings.sources["jobs.reclaim_count"]) == (5, f"{toml}:4")
    assert (settings.server.port, settings.sources["server.port"]) == (9000, "command line")
    assert settings.sources["server.host"] == "default"


def test_unprefixed_variables_are_read_only_if_declared() -> None:
    settings = load(environ={"HOST": "machine", "PORT": "1", "LOG_LEVEL": "debug"})
    assert (settings.server.host, settings.server.port, settings.log.level) == ("127.0.0.1", 8080, "info")


@pytest.mark.parametrize(
    ("variable", "value", "fix"),
    [
        ("ADJUDGE_PORT", "eighty", "must be an integer"),
        ("ADJUDGE_PORT", "80.5", "must be an integer"),
        ("ADJUDGE_PORT", "70000", "must be a number from 0 to 65535"),
        ("JOB_LEASE_SEC", "nan", "must be a finite number"),
        ("JOB_LEASE_SEC", "0", "must be a number from 1 to 3600"),
        ("OUTBOX_ENABLED", "maybe", "must be true or false"),
        ("ADJUDGE_LOG_LEVEL", "loud", "must be one of debug, info, warning, error"),
        ("ADJUDGE_ENVIRONMENT", "my env", "must match"),
        ("ADJUDGE_DATABASE_URL", "mysql://root:hunter2@db/x", "must be sqlite:///FILE"),
        ("ADJUDGE_DATABASE_URL", "sqlite://", "must be sqlite:///FILE"),
    ],
)
def test_invalid_variable_error_names_source_and_fix(variable: str, value: str, fix: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        load(environ={variable: value})
    assert f"environment {variable}" in caught.value.message
    assert fix in caught.value.message
    assert "hunter2" not in caught.value.message


@pytest.mark.parametrize(
    ("text", "line", "fix"),
    [
        ("[jobs]\n# how long\nlease_sec = 'long'\n", 3, "must be a number"),
        ("[jobs]\nlease_sec = true\n", 2, "must be a number"),
        ("jobs.lease_sec = 0\n", 1, "from 1 to 3600"),
        ("[server]\n\nprot = 1\n", 3, "did you mean server.port?"),
        ("[server]\nhost = 5\n", 2, "must be a quoted string"),
        ("colour = 'red'\n", 1, "unknown setting"),
    ],
)
def test_invalid_toml_error_names_line_and_fix(toml: Path, text: str, line: int, fix: str) -> None:
    toml.write_text(text)
    with pytest.raises(InvalidInput) as caught:
        load(environ={}, file=toml)
    assert f"{toml}:{line}" in caught.value.message
    assert fix in caught.value.message


def test_missing_or_malformed_file(toml: Path) -> None:
    with pytest.raises(InvalidInput, match="file not found"):
        load(environ={"ADJUDGE_CONFIG": str(toml)})
    toml.write_text("[jobs\n")
    with pytest.raises(InvalidInput, match=r"adjudge\.toml: cannot be read: .*line 1"):
        load(environ={"ADJUDGE_CONFIG": str(toml)})


def test_heartbeat_above_half_of_lease_is_rejected() -> None:
    with pytest.raises(InvalidInput, match=r"JOB_HEARTBEAT_SEC.*must be at most half of jobs\.lease_sec"):
        load(environ={"JOB_HEARTBEAT_SEC": "8"})


def test_secrets_print_redacted() -> None:
    secret = Secret("hunter2")
    assert (str(secret), repr(secret), f"{secret}") == ("[redacted]", "'[redacted]'", "[redacted]")
    with pytest.raises(TypeError):
        json.dumps(secret)
    url = DatabaseUrl("postgresql://judge:hunter2@db:5432/adjudge")
    assert str(url) == "postgresql://judge:[redacted]@db:5432/adjudge"
    settings = load(environ={"ADJUDGE_DATABASE_URL": url.reveal()})
    assert "hunter2" not in repr(settings)
    assert settings.database.url.reveal() == url.reveal()


def test_misspelled_variable_is_reported() -> None:
    settings = load(environ={"ADJUDGE_DATABASE_ULR": "x", "ADJUDGE_PYTHON": "y", "HOME": "/"})
    assert settings.unknown_variables == ("ADJUDGE_DATABASE_ULR is not a setting: did you mean ADJUDGE_DATABASE_URL?",)


def test_environment_names_are_unique() -> None:
    names = [variable for _, _, setting in all_settings() for variable in environment_names(setting)]
    assert len(names) == len(set(names))


def test_default_database_keeps_other_settings_of_its_section() -> None:
    assert load(environ={"ADJUDGE_DATABASE_TIMEOUT_SEC": "45"}).database.timeout_sec == 45.0
