"""Every knob, and the only reader of the environment.

A value comes from the command line, else the environment (``ADJUDGE_…``, then the bare name that a knob has always had,
such as ``JOB_LEASE_SEC``), else ``adjudge.toml``, else its default; and it remembers from which. What belongs here: the
knobs, their defaults, reading and refusing them. What does not: anything that acts on one. Composition code (``cli``,
``api``) reads settings and passes plain values down; no other room imports this package.
"""

from __future__ import annotations

import dataclasses
import difflib
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, get_type_hints

from adjudge.domain.errors import InvalidInput
from adjudge.settings.chain_knobs import Chains
from adjudge.settings.job_knobs import Jobs
from adjudge.settings.knob import PREFIX, Knob, variables
from adjudge.settings.parse import parse
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
    ServerSettings,
    WebhooksSettings,
    WorkerSettings,
    all_settings,
)
from adjudge.settings.toml_file import TomlFile

__all__ = [
    "CONFIG_VARIABLE",
    "DatabaseUrl",
    "EffectiveSetting",
    "Secret",
    "Settings",
    "all_settings",
    "load",
    "variables",
]

CONFIG_VARIABLE: Final = "ADJUDGE_CONFIG"


@dataclass(frozen=True, slots=True)
class EffectiveSetting:
    """One value in force, as ``adjudge config`` shows it."""

    name: str
    value: object
    source: str
    knob: Knob


@dataclass(frozen=True, slots=True)
class Settings:
    """All knobs in force."""

    server: ServerSettings
    database: DatabaseSettings
    jobs: Jobs
    files: FilesSettings
    worker: WorkerSettings
    retry: RetrySettings
    judge: JudgeSettings
    accounts: AccountsSettings
    admission: AdmissionSettings
    cache: CacheSettings
    chains: Chains
    executions: ExecutionsSettings
    webhooks: WebhooksSettings
    log: LogSettings
    sources: Mapping[str, str]
    """``section.key`` → where its value came from."""
    strangers: tuple[str, ...] = ()
    """Variables that look like ours and are not."""

    def entries(self) -> Iterator[EffectiveSetting]:
        """Every knob with its value and source, secrets blanked by their type."""
        for name, _, knob in all_settings():
            section, key = name.split(".")
            yield EffectiveSetting(name, getattr(getattr(self, section), key), self.sources[name], knob)


def load(
    overrides: Mapping[str, object] | None = None,
    environ: Mapping[str, str] | None = None,
    file: Path | None = None,
) -> Settings:
    """Read every knob, or say which one cannot be used, where it stands and what would do.

    ``overrides`` are options of the command line by ``section.key``; None among them means not given.
    """
    env = os.environ if environ is None else environ
    named = file or (Path(env[CONFIG_VARIABLE]) if env.get(CONFIG_VARIABLE) else None)
    toml = TomlFile.read(named)
    given = {name: value for name, value in (overrides or {}).items() if value is not None}
    sources: dict[str, str] = {}
    sections: dict[str, Any] = {}
    for section, model in SECTIONS.items():
        hints, values = get_type_hints(model), {}
        for item in dataclasses.fields(model):
            name, knob = f"{section}.{item.name}", item.metadata["knob"]
            raw, source = _raw(name, knob, given, env, toml)
            sources[name] = source
            values[item.name] = item.default if raw is None else parse(raw, hints[item.name], knob, name, source)
        sections[section] = model(**values)
    return _finished(Settings(**sections, sources=MappingProxyType(sources), strangers=_strangers(env)))


def _raw(
    name: str, knob: Knob, given: Mapping[str, object], env: Mapping[str, str], toml: TomlFile
) -> tuple[object, str]:
    """Fetch the value as it was written, and where; None and ``default`` where nobody wrote one."""
    if name in given:
        return given[name], "command line"
    for variable in variables(knob):
        if env.get(variable, "") != "":
            return env[variable], f"environment {variable}"
    if name in toml.values:
        return toml.values[name], toml.where(name)
    return None, "default"


def _finished(settings: Settings) -> Settings:
    """Fill in what depends on other knobs, and refuse what does not fit together."""
    jobs, sources = settings.jobs, settings.sources
    if jobs.heartbeat_sec > jobs.lease_sec / 2:
        raise InvalidInput(
            f"jobs.heartbeat_sec is {jobs.heartbeat_sec:g} ({sources['jobs.heartbeat_sec']}) and jobs.lease_sec is "
            f"{jobs.lease_sec:g} ({sources['jobs.lease_sec']}): a lease must outlast two heartbeats.",
            field="jobs.heartbeat_sec",
        )
    admission = settings.admission
    if admission.low_watermark > admission.high_watermark > 0:
        raise InvalidInput(
            f"admission.low_watermark ({admission.low_watermark}, "
            f"{sources['admission.high_watermark']}) must not exceed admission.high_watermark "
            f"({admission.high_watermark}, {sources['admission.high_watermark']}).",
            field="admission.low_watermark",
        )
    if settings.database.url.reveal():
        return settings
    url = DatabaseUrl(f"sqlite:///{settings.server.data_dir / 'adjudge.db'}")
    return dataclasses.replace(settings, database=dataclasses.replace(settings.database, url=url))


def _strangers(env: Mapping[str, str]) -> tuple[str, ...]:
    known = {variable for _, _, knob in all_settings() for variable in variables(knob)} | {CONFIG_VARIABLE}
    notes = []
    for variable in sorted(set(env) - known):
        close = difflib.get_close_matches(variable, known, n=1, cutoff=0.85)
        if variable.startswith(PREFIX) and close:
            notes.append(f"{variable} is not a setting: did you mean {close[0]}?")
    return tuple(notes)
