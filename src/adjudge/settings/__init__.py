"""Settings: declarations, loading and validation. The only code that reads the environment.

Precedence: command line, environment (``ADJUDGE_NAME``, then the unprefixed name that some settings keep, such as
``JOB_LEASE_SEC``), ``adjudge.toml``, default. Each value records its source. Composition code (``cli``, ``api``) reads
settings and passes plain values down; no other package imports this one.
"""

from __future__ import annotations

import dataclasses
import difflib
import ipaddress
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, get_type_hints

from adjudge.domain.errors import InvalidInput
from adjudge.settings.chains_section import ChainsSettings
from adjudge.settings.jobs_section import JobsSettings
from adjudge.settings.mail_section import MailSettings
from adjudge.settings.parse import parse
from adjudge.settings.printing_section import PrintingSettings
from adjudge.settings.retention_section import RetentionSettings
from adjudge.settings.secret import DatabaseUrl, Secret
from adjudge.settings.sections import (
    SECTIONS,
    AccountsSettings,
    AdmissionSettings,
    CacheSettings,
    DatabaseSettings,
    ExecutionsSettings,
    FilesSettings,
    JudgeSettings,
    LogSettings,
    RetrySettings,
    TracesSettings,
    WebhooksSettings,
    WorkerSettings,
    all_settings,
)
from adjudge.settings.server_section import ServerSettings
from adjudge.settings.setting import PREFIX, Setting, environment_names
from adjudge.settings.toml_file import TomlFile

__all__ = [
    "CONFIG_VARIABLE",
    "DatabaseUrl",
    "EffectiveSetting",
    "Secret",
    "Settings",
    "all_settings",
    "environment_names",
    "load",
]

CONFIG_VARIABLE: Final = "ADJUDGE_CONFIG"
_TOKEN_CHARACTERS: Final = 16


@dataclass(frozen=True, slots=True)
class EffectiveSetting:
    """One effective value, as ``adjudge config`` shows it."""

    name: str
    value: object
    source: str
    setting: Setting


@dataclass(frozen=True, slots=True)
class Settings:
    """All effective settings, by section."""

    server: ServerSettings
    database: DatabaseSettings
    jobs: JobsSettings
    files: FilesSettings
    worker: WorkerSettings
    retry: RetrySettings
    judge: JudgeSettings
    accounts: AccountsSettings
    admission: AdmissionSettings
    cache: CacheSettings
    chains: ChainsSettings
    executions: ExecutionsSettings
    printing: PrintingSettings
    webhooks: WebhooksSettings
    retention: RetentionSettings
    mail: MailSettings
    log: LogSettings
    traces: TracesSettings
    sources: Mapping[str, str]
    """``section.key`` → source of its value."""
    unknown_variables: tuple[str, ...] = ()
    """Warnings about ``ADJUDGE_*`` variables that look like a misspelled setting."""

    def entries(self) -> Iterator[EffectiveSetting]:
        """Every setting with its value and source; secrets print redacted."""
        for name, _, setting in all_settings():
            section, key = name.split(".")
            yield EffectiveSetting(name, getattr(getattr(self, section), key), self.sources[name], setting)


def load(
    overrides: Mapping[str, object] | None = None,
    environ: Mapping[str, str] | None = None,
    file: Path | None = None,
) -> Settings:
    """Load all settings; an invalid one raises InvalidInput with its name, its source and the fix.

    ``overrides`` are command-line options by ``section.key``; None means not set.
    """
    env = os.environ if environ is None else environ
    toml = TomlFile.read(file or (Path(env[CONFIG_VARIABLE]) if env.get(CONFIG_VARIABLE) else None))
    options = {name: value for name, value in (overrides or {}).items() if value is not None}
    sources: dict[str, str] = {}
    sections: dict[str, Any] = {}
    for section, model in SECTIONS.items():
        hints, values = get_type_hints(model), {}
        for item in dataclasses.fields(model):
            name, setting = f"{section}.{item.name}", item.metadata["setting"]
            raw, source = _raw_value(name, setting, options, env, toml)
            sources[name] = source
            values[item.name] = item.default if raw is None else parse(raw, hints[item.name], setting, name, source)
        sections[section] = model(**values)
    settings = Settings(**sections, sources=MappingProxyType(sources), unknown_variables=_unknown_variables(env))
    _check_heartbeat(settings)
    _check_watermarks(settings)
    _check_metrics_access(settings)
    return _with_default_database(settings)


def _raw_value(
    name: str, setting: Setting, options: Mapping[str, object], env: Mapping[str, str], toml: TomlFile
) -> tuple[object, str]:
    """The unparsed value and its source; (None, "default") if it is not set."""
    if name in options:
        return options[name], "command line"
    for variable in environment_names(setting):
        if env.get(variable, "") != "":
            return env[variable], f"environment {variable}"
    if name in toml.values:
        return toml.values[name], toml.where(name)
    return None, "default"


def _check_metrics_access(settings: Settings) -> None:
    server = settings.server
    networks = [item.strip() for item in server.metrics_networks.split(",")]
    try:
        for network in networks if networks != ["none"] else ():
            ipaddress.ip_network(network)
    except ValueError as error:
        name = "server.metrics_networks"
        raise InvalidInput(
            f"{name} ({settings.sources[name]}): {error}; give networks such as 10.0.0.0/8, or none.", field=name
        ) from None
    token, name = server.metrics_token.reveal(), "server.metrics_token"
    if token and len(token) < _TOKEN_CHARACTERS:
        raise InvalidInput(
            f"{name} ({settings.sources[name]}): must have at least {_TOKEN_CHARACTERS} characters.", field=name
        )


def _check_heartbeat(settings: Settings) -> None:
    jobs, sources = settings.jobs, settings.sources
    if jobs.heartbeat_sec > jobs.lease_sec / 2:
        raise InvalidInput(
            f"jobs.heartbeat_sec ({jobs.heartbeat_sec:g}, {sources['jobs.heartbeat_sec']}) must be at most half of "
            f"jobs.lease_sec ({jobs.lease_sec:g}, {sources['jobs.lease_sec']}).",
            field="jobs.heartbeat_sec",
        )


def _check_watermarks(settings: Settings) -> None:
    admission, sources = settings.admission, settings.sources
    if admission.low_watermark > admission.high_watermark > 0:
        raise InvalidInput(
            f"admission.low_watermark ({admission.low_watermark}, {sources['admission.low_watermark']}) must not "
            f"exceed admission.high_watermark ({admission.high_watermark}, {sources['admission.high_watermark']}).",
            field="admission.low_watermark",
        )


def _with_default_database(settings: Settings) -> Settings:
    """Without a database URL, use a SQLite file in the data directory."""
    if settings.database.url.reveal():
        return settings
    url = DatabaseUrl(f"sqlite:///{settings.server.data_dir / 'adjudge.db'}")
    return dataclasses.replace(settings, database=dataclasses.replace(settings.database, url=url))


def _unknown_variables(env: Mapping[str, str]) -> tuple[str, ...]:
    known = {CONFIG_VARIABLE}.union(*(environment_names(setting) for _, _, setting in all_settings()))
    warnings = []
    for variable in sorted(set(env) - known):
        close = difflib.get_close_matches(variable, known, n=1, cutoff=0.85)
        if variable.startswith(PREFIX) and close:
            warnings.append(f"{variable} is not a setting: did you mean {close[0]}?")
    return tuple(warnings)
