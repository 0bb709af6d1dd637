"""``adjudge contest simulate``: a rehearsal with simulated teams on a running server."""

from __future__ import annotations

import asyncio
import ipaddress
import json
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

import click

from adjudge.cli.connection import LoginStore, report_api_errors
from adjudge.cli.options import json_option, server_option
from adjudge.cli.simulation_report import print_summary, summarize, summary_document
from adjudge.cli.simulation_run import SimulationOptions, SimulationProgress, run_simulation
from adjudge.contests.simulation import SimulatedProgram, plan_simulation
from adjudge.domain.errors import InvalidInput

_LANGUAGES: Final = {".py": "python3", ".cpp": "cpp", ".c": "c"}
_REJECTED: Final = ("wrong_answer", "run_time_error")
_DEFAULT_SEC: Final = 60.0
_REPORT_SEC: Final = 10.0
_INTERRUPTED: Final = 130


@click.command()
@click.argument("contest")
@click.option("--teams", type=click.IntRange(1, 10_000), default=10, show_default=True, help="Number of teams.")
@click.option(
    "--submissions",
    type=click.IntRange(1, 1_000_000),
    help="Number of submissions. Default: what the teams manage, about 4 each.",
)
@click.option("--duration", type=click.FloatRange(1, 86_400), help="Seconds of submitting. Default: 60.")
@click.option("--rate", type=click.FloatRange(0.01, 10_000), help="Mean submissions per second, instead of --duration.")
@click.option("--seed", type=int, default=1, show_default=True, help="The same seed gives the same submissions.")
@click.option(
    "--problems",
    "folder",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    default=Path("examples/problems"),
    show_default=True,
    help="Folder of packages with programs of the jury; the problems must be published on the server.",
)
@click.option("--problem", "chosen", multiple=True, help="Use only this problem of the folder. May be repeated.")
@click.option(
    "--language", "languages", multiple=True, help="Use only programs in this language. May be repeated. Default: all."
)
@click.option("--login", "with_logins", is_flag=True, help="Every team logs in with its password; slow by intention.")
@click.option("--resume", "is_resumed", is_flag=True, help="Continue an interrupted simulation with the same options.")
@click.option(
    "--timeout",
    "timeout_sec",
    type=click.FloatRange(1, 86_400),
    default=3_600.0,
    show_default=True,
    help="Seconds to wait for verdicts after the last submission.",
)
@click.option("--host-is-mine", is_flag=True, help="Allow a server that is not on this machine.")
@json_option
@server_option
def simulate(
    *,
    contest: str,
    teams: int,
    submissions: int | None,
    duration: float | None,
    rate: float | None,
    seed: int,
    folder: Path,
    chosen: tuple[str, ...],
    languages: tuple[str, ...],
    with_logins: bool,
    is_resumed: bool,
    timeout_sec: float,
    host_is_mine: bool,
    as_json: bool,
    server: str | None,
) -> None:
    """Create the private contest CONTEST and let simulated teams take part in it.

    Teams submit programs of the jury, read the scoreboard and ask the jury, whose answers are simulated too. Their
    accounts are created with the contest. Needs permission to create contests. Exits with 1 if a submission was lost
    or the scoreboard is not what the verdicts give.
    """
    if duration is not None and rate is not None:
        raise InvalidInput("--rate and --duration: give one of them.", field="rate")
    if with_logins and is_resumed:
        raise InvalidInput("--login: not possible with --resume; the passwords were shown once.", field="login")
    url, login = LoginStore().find(server)
    check_host(url, host_is_mine=host_is_mine)
    programs = choose_programs(load_programs(folder), chosen, languages)
    plan = plan_simulation(seed=seed, teams=teams, programs=programs, submissions=submissions)
    duration_sec = len(plan.submissions) / rate if rate is not None else duration or _DEFAULT_SEC
    options = SimulationOptions(contest, plan, duration_sec, is_resumed, with_logins, timeout_sec)
    progress = SimulationProgress()
    try:
        with report_api_errors(url):
            asyncio.run(_run(url, login.token, options, progress))
    except KeyboardInterrupt:
        click.echo(f"\nInterrupted. {describe_rest(options, progress)}", err=True)
        raise click.exceptions.Exit(_INTERRUPTED) from None
    except click.exceptions.Exit:
        click.echo(f"adjudge: {describe_rest(options, progress)}", err=True)
        raise
    summary = summarize(options, progress)
    if as_json:
        click.echo(json.dumps(summary_document(summary, progress.scoreboard), indent=2))
    else:
        print_summary(summary, progress.scoreboard)
    if summary.problems:
        raise click.ClickException("; ".join(summary.problems) + ".")


async def _run(url: str, token: str, options: SimulationOptions, progress: SimulationProgress) -> None:
    reports = asyncio.create_task(_report(options, progress))
    try:
        await run_simulation(url, token, options, progress)
    finally:
        reports.cancel()


async def _report(options: SimulationOptions, progress: SimulationProgress) -> None:
    """Say on stderr how far the simulation is."""
    start, planned = time.monotonic(), len(options.plan.submissions)
    while True:
        await asyncio.sleep(_REPORT_SEC)
        counts = f"{len(progress.accepted)} of {planned} submitted, {len(progress.ended)} judged"
        errors = f", {progress.errors.total()} errors" if progress.errors else ""
        click.echo(f"{time.monotonic() - start:.0f} s: {counts}{errors}", err=True)


def describe_rest(options: SimulationOptions, progress: SimulationProgress) -> str:
    """What an unfinished simulation leaves on the server, and what to do with it."""
    name = options.contest
    if not progress.is_created:
        return "Nothing was created on the server."
    counts = f"{len(progress.accepted)} of {len(options.plan.submissions)} submissions, {len(progress.ended)} judged"
    return (
        f"The contest {name} with its accounts stays on the server: {counts}. Continue with the same options and "
        f"--resume, or end it with `adjudge contest cancel {name}`."
    )


def check_host(url: str, *, host_is_mine: bool) -> None:
    """Reject a server on another machine, unless the caller is responsible for it."""
    host = urlsplit(url).hostname or ""
    try:
        is_loopback = host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        is_loopback = False
    if not is_loopback and not host_is_mine:
        raise InvalidInput(
            f"server: {host} is not this machine; a simulation loads a server. Add --host-is-mine if it is yours.",
            field="server",
        )


def load_programs(folder: Path) -> dict[str, list[SimulatedProgram]]:
    """The programs of the jury by problem; problems without an accepted program of one file are left out."""
    found: dict[str, list[SimulatedProgram]] = {}
    for package in sorted(item for item in folder.iterdir() if item.is_dir()):
        programs = [
            SimulatedProgram(_LANGUAGES[file.suffix], file.read_text(encoding="utf-8"), kind == "accepted")
            for kind in ("accepted", *_REJECTED)
            for file in sorted((package / "submissions" / kind).glob("*"))
            if file.suffix in _LANGUAGES and file.is_file()
        ]
        if any(item.is_accepted for item in programs):
            found[package.name] = programs
    if not found:
        raise InvalidInput(f"problems: {folder} has no package with an accepted program.", field="problems")
    return found


def choose_programs(
    programs: dict[str, list[SimulatedProgram]], problems: Sequence[str], languages: Sequence[str]
) -> dict[str, list[SimulatedProgram]]:
    """The programs of some problems and languages; empty: all. Each problem must keep an accepted program."""
    for name in problems:
        if name not in programs:
            raise InvalidInput(
                f"problem: {name[:64]!r} has no accepted program in the folder; choose from {', '.join(programs)}.",
                field="problem",
            )
    for name in languages:
        if name not in _LANGUAGES.values():
            raise InvalidInput(
                f"language: {name[:64]!r} cannot be simulated; choose from {', '.join(_LANGUAGES.values())}.",
                field="language",
            )
    found = {
        slug: [item for item in programs[slug] if not languages or item.language in languages]
        for slug in dict.fromkeys(problems or programs)
    }
    for slug, items in found.items():
        if not any(item.is_accepted for item in items):
            raise InvalidInput(
                f"language: {slug} has no accepted program in {', '.join(languages)}; leave it out with --problem.",
                field="language",
            )
    return found
