"""``adjudge contest simulate``: a rehearsal with simulated teams on a running server."""

from __future__ import annotations

import asyncio
import ipaddress
import json
import time
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

import click
from rich.table import Table

from adjudge.cli.connection import LoginStore, report_api_errors
from adjudge.cli.options import json_option, server_option
from adjudge.cli.output import make_console
from adjudge.client import AsyncClient
from adjudge.client.requests import fetch, path, post
from adjudge.client.transport import shared_transport
from adjudge.contests.simulation import PlannedSubmission, SimulatedProgram, plan_submissions
from adjudge.domain.errors import InvalidInput
from adjudge.schema.contest_participants import AccountCardRead, TeamImportRead

_LANGUAGES: Final = {".py": "python3", ".cpp": "cpp", ".c": "c"}
_REJECTED: Final = ("wrong_answer", "run_time_error")
_CONNECTIONS: Final = 64
_SHOWN: Final = 20
_SLACK_SEC: Final = 600
"""The contest lasts longer than the plan, so that a slow server refuses no submission."""


@dataclass(frozen=True, slots=True)
class SimulationRow:
    """What a team reached, from the verdicts of its submissions."""

    team: str
    solved: int
    rejected: int


@dataclass(frozen=True, slots=True)
class SimulationSummary:
    """The result of a simulation."""

    contest: str
    teams: int
    submissions: int
    unjudged: int
    submitted_per_sec: float
    judged_per_sec: float
    verdicts: dict[str, int]
    rows: list[SimulationRow]


@click.command()
@click.argument("contest")
@click.option("--teams", type=click.IntRange(1, 10_000), default=10, show_default=True, help="Number of teams.")
@click.option("--duration", type=click.FloatRange(1, 86_400), default=60.0, show_default=True, help="Seconds.")
@click.option("--seed", type=int, default=1, show_default=True, help="The same seed gives the same submissions.")
@click.option(
    "--problems",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    default=Path("examples/problems"),
    show_default=True,
    help="Folder of packages with programs of the jury; the problems must be published on the server.",
)
@click.option("--host-is-mine", is_flag=True, help="Allow a server that is not on this machine.")
@json_option
@server_option
def simulate(
    *,
    contest: str,
    teams: int,
    duration: float,
    seed: int,
    problems: Path,
    host_is_mine: bool,
    as_json: bool,
    server: str | None,
) -> None:
    """Create the private contest CONTEST and let simulated teams take part in it.

    Accounts of the teams are created with the contest. The command uses programs of the jury and needs permission to
    create contests. Raise accounts.login_per_min on the server for more than 30 teams.
    """
    url, login = LoginStore().find(server)
    check_host(url, host_is_mine=host_is_mine)
    programs = load_programs(problems)
    plan = plan_submissions(seed=seed, teams=teams, programs=programs, duration_sec=duration)
    with report_api_errors(url):
        summary = asyncio.run(
            run_simulation(url, login.token, contest, teams=teams, duration_sec=duration, programs=programs, plan=plan)
        )
    if as_json:
        click.echo(json.dumps(asdict(summary), indent=2))
    else:
        _print(summary)
    if summary.unjudged:
        raise click.ClickException(f"{summary.unjudged} submissions have no verdict.")


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


async def run_simulation(
    url: str,
    token: str,
    contest: str,
    *,
    teams: int,
    duration_sec: float,
    programs: Mapping[str, object],
    plan: Sequence[PlannedSubmission],
) -> SimulationSummary:
    """Create the contest, submit as planned, wait for all verdicts."""
    transport = shared_transport(_CONNECTIONS)
    try:
        organiser = AsyncClient(url, token, transport=transport)
        cards = await _prepare(organiser, contest, teams, duration_sec, programs)
        gate = asyncio.Semaphore(_CONNECTIONS)

        async def log_in(card: AccountCardRead) -> AsyncClient:
            async with gate:
                made = await AsyncClient(url, transport=transport).login(
                    card.username, card.password, token_name=contest, expires_in_days=1
                )
            return AsyncClient(url, made.secret, transport=transport)

        clients = await asyncio.gather(*(log_in(card) for card in cards))
        await organiser.contest_start(contest)
        start = time.monotonic()
        ids = await asyncio.gather(*(_submit(clients[item.team], gate, contest, start, item) for item in plan))
        submitted_sec = time.monotonic() - start
        ended = await organiser.wait(ids)
        judged_sec = time.monotonic() - start
    finally:
        await transport.aclose()
    verdicts = [None if item.verdict is None else str(item.verdict) for item in ended]
    return SimulationSummary(
        contest=contest,
        teams=teams,
        submissions=len(plan),
        unjudged=verdicts.count(None),
        submitted_per_sec=round(len(plan) / submitted_sec, 1),
        judged_per_sec=round(len(plan) / judged_sec, 1),
        verdicts=dict(sorted(Counter(item for item in verdicts if item is not None).items())),
        rows=count_rows(plan, verdicts, teams),
    )


async def _prepare(
    organiser: AsyncClient, contest: str, teams: int, duration_sec: float, problems: Mapping[str, object]
) -> list[AccountCardRead]:
    """Create and publish the contest with its teams; return their accounts in the order of the teams."""
    later = datetime.now(UTC) + timedelta(days=1)
    await organiser.contest_create(
        {
            "slug": contest,
            "title": f"Rehearsal {contest}",
            "duration_sec": duration_sec + _SLACK_SEC,
            "starts_at": later.isoformat(timespec="milliseconds"),
            "visibility": "private",
            "registration": "list",
        }
    )
    await organiser.contest_set_problems(contest, [{"problem": slug} for slug in sorted(problems)])
    names = [f"{contest}-{number:05}" for number in range(teams)]
    teams_file = [{"id": name, "name": name} for name in names]
    accounts_file = [{"id": name, "username": name, "type": "team", "team_id": name} for name in names]
    files = {"teams.json": teams_file, "accounts.json": accounts_file}
    request = post(
        path("contests", contest, "participants", action="import"),
        {"files": [{"name": name, "text": json.dumps(rows)} for name, rows in files.items()]},
    )
    made = await organiser.run_operation(fetch(TeamImportRead, request, organiser.retry))
    await organiser.contest_publish(contest)
    return sorted(made.accounts, key=lambda card: card.username)


async def _submit(
    client: AsyncClient, gate: asyncio.Semaphore, contest: str, start: float, item: PlannedSubmission
) -> str:
    """Submit one program at its time; return the id of the submission."""
    await asyncio.sleep(max(0.0, start + item.at_sec - time.monotonic()))
    async with gate:
        made = await client.submit(item.problem, item.program.language, item.program.source, contest=contest)
    return made.submission_id


def count_rows(plan: Sequence[PlannedSubmission], verdicts: Sequence[str | None], teams: int) -> list[SimulationRow]:
    """Solved problems and rejected submissions before them, best teams first."""
    solved: defaultdict[int, set[str]] = defaultdict(set)
    rejected: Counter[int] = Counter()
    for item, verdict in zip(plan, verdicts, strict=True):
        if verdict == "AC":
            solved[item.team].add(item.problem)
        elif verdict is not None and item.problem not in solved[item.team]:
            rejected[item.team] += 1
    rows = [SimulationRow(f"team {team + 1}", len(solved[team]), rejected[team]) for team in range(teams)]
    return sorted(rows, key=lambda row: (-row.solved, row.rejected))


def _print(summary: SimulationSummary) -> None:
    console = make_console()
    console.print(f"Contest {summary.contest}: {summary.teams} teams, {summary.submissions} submissions.")
    console.print(f"Submitted {summary.submitted_per_sec}/s, judged {summary.judged_per_sec}/s.")
    console.print(", ".join(f"{verdict} {count}" for verdict, count in summary.verdicts.items()))
    table = Table("team", "solved", "rejected")
    for row in summary.rows[:_SHOWN]:
        table.add_row(row.team, str(row.solved), str(row.rejected))
    console.print(table)
