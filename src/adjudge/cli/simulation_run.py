"""Runs a simulated contest against a server: the organiser, the jury and all teams, in one process.

Every team submits its programs in order; a program is sent again with the same idempotency key until the server accepts
or refuses it, so an interrupted simulation can be resumed without a duplicate. Requests that the server asks to repeat
later (429) and requests without a response are repeated for minutes: a busy machine makes a simulation slower, not
wrong.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Final, TypeVar

from adjudge.client import AsyncClient, ClientError, NotFoundError
from adjudge.client.retry import ClientRetryPolicy
from adjudge.client.transport import SharedTransport
from adjudge.contests.simulation import PlannedQuestion, PlannedSubmission, SimulationPlan
from adjudge.domain.contest import ContestPhase
from adjudge.domain.errors import InvalidInput
from adjudge.domain.retry import RetryPolicy
from adjudge.domain.states import ContestState
from adjudge.schema.contest_submissions import ContestSubmissionRead
from adjudge.schema.contests import ContestDetail
from adjudge.schema.scoreboard import ScoreboardRead
from adjudge.schema.submissions import SubmissionRead

T = TypeVar("T")

_REQUESTS: Final = 32
"""Requests of teams at a time."""
_WAITS: Final = 32
"""Submissions whose verdicts are awaited at a time."""
_OTHER_CONNECTIONS: Final = 8
_LOGINS: Final = 4
_SLACK_SEC: Final = 3_600
"""The contest lasts longer than the plan, so that a slow server refuses no submission."""
_LONG_POLL_SEC: Final = 20.0
_JURY_SEC: Final = 2.0
_ROWS: Final = 500
_BOARD_SEC: Final = 30.0
"""How long the scoreboard of the server may show a verdict later than the submission."""
_BOARD_POLL_SEC: Final = 0.5
_RETRY: Final = ClientRetryPolicy(RetryPolicy(max_retries=60, base_ms=250, cap_ms=5_000), longest_wait_sec=120)
_TOKEN_HOURS: Final = 48.0


@dataclass(frozen=True, slots=True)
class SimulationOptions:
    """What is simulated, and how."""

    contest: str
    plan: SimulationPlan
    duration_sec: float
    is_resumed: bool = False
    """Continue in an existing contest."""
    with_logins: bool = False
    """Every team logs in with its password; otherwise the organiser creates tokens."""
    timeout_sec: float = 3_600.0
    """How long verdicts are awaited after the last submission."""


@dataclass(slots=True)
class SimulationProgress:
    """What happened so far; complete after the simulation."""

    is_created: bool = False
    """Whether the contest exists on the server."""
    accepted: dict[int, str] = field(default_factory=dict)
    """Submissions by their position in the plan."""
    ended: dict[int, SubmissionRead] = field(default_factory=dict)
    errors: Counter[str] = field(default_factory=Counter)
    asked: dict[int, int] = field(default_factory=dict)
    """Numbers of questions by team."""
    answers_read: int = 0
    scoreboard_ms: list[float] = field(default_factory=list)
    statuses: Counter[int] = field(default_factory=Counter)
    """Responses by HTTP status."""
    prepared_sec: float = 0.0
    submitted_sec: float = 0.0
    judged_sec: float = 0.0
    listed: list[ContestSubmissionRead] = field(default_factory=list)
    """All submissions of the contest as the server lists them."""
    scoreboard: ScoreboardRead | None = None
    """All rows of the server's scoreboard, at the end."""


async def run_simulation(url: str, token: str, options: SimulationOptions, progress: SimulationProgress) -> None:
    """Create or resume the contest, act as planned, wait for all verdicts, read the results."""
    transport = SharedTransport(_REQUESTS + _WAITS + _OTHER_CONNECTIONS)
    progress.statuses = transport.statuses

    def connect(secret: str | None) -> AsyncClient:
        return AsyncClient(url, secret, retry=_RETRY, transport=transport)

    try:
        await _Simulation(options, progress, connect(token), connect).run()
    finally:
        await transport.aclose()


@dataclass(slots=True)
class _Simulation:
    options: SimulationOptions
    progress: SimulationProgress
    organiser: AsyncClient
    connect: Callable[[str | None], AsyncClient]
    gate: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(_REQUESTS))
    start: float = 0.0
    """When the contest started, on the monotonic clock."""
    submitted_at: float | None = None
    """When the last team had submitted."""
    labels: dict[str, str] = field(default_factory=dict)

    async def run(self) -> None:
        began = time.monotonic()
        clients = await (self._resume() if self.options.is_resumed else self._prepare())
        self.progress.prepared_sec = time.monotonic() - began
        self.labels = {
            item.slug: item.label for item in (await self.organiser.contest_problems(self.options.contest)).items
        }
        self.start = time.monotonic() - await self._start()
        accepted: asyncio.Queue[int | None] = asyncio.Queue()
        parts = (self._run_teams(clients, accepted), self._run_jury(), self._collect_verdicts(accepted))
        tasks = [asyncio.create_task(part) for part in parts]
        try:
            await asyncio.gather(*tasks)
        finally:
            for task in tasks:
                task.cancel()
        self.progress.judged_sec = time.monotonic() - self.start
        await self._read_answers(clients)
        await self._read_results()

    # Before the contest.

    async def _prepare(self) -> list[AsyncClient]:
        """Create and publish the contest with its teams; return their clients in the order of the teams."""
        options = self.options
        await self._check_problems()
        later = datetime.now(UTC) + timedelta(days=1)
        await self.organiser.contest_create(
            {
                "slug": options.contest,
                "title": f"Rehearsal {options.contest}",
                "duration_sec": options.duration_sec + _SLACK_SEC,
                "starts_at": later.isoformat(timespec="milliseconds"),
                "visibility": "private",
                "registration": "list",
            }
        )
        self.progress.is_created = True
        await self.organiser.contest_set_problems(
            options.contest, [{"problem": item} for item in options.plan.problems]
        )
        names = [_team_name(options.contest, team) for team in range(options.plan.teams)]
        files = {
            "teams.json": [{"id": name, "name": name} for name in names],
            "accounts.json": [{"id": name, "username": name, "type": "team", "team_id": name} for name in names],
        }
        made = await self.organiser.contest_import_teams(
            options.contest, {name: json.dumps(rows) for name, rows in files.items()}
        )
        await self.organiser.contest_publish(options.contest)
        if options.with_logins:
            return await self._log_in({card.username: card.password for card in made.accounts})
        return await self._clients_with_tokens()

    async def _check_problems(self) -> None:
        """Raise if a problem of the plan is not on the server; nothing has been created then."""
        missing = []
        for slug in self.options.plan.problems:
            try:
                await self.organiser.problem(slug)
            except NotFoundError:
                missing.append(slug)
        if missing:
            raise InvalidInput(
                f"problems: {', '.join(missing)} not published on the server. Publish them with "
                "`adjudge problem publish`, or choose others with --problem or --problems.",
                field="problems",
            )

    async def _resume(self) -> list[AsyncClient]:
        found = await self.organiser.contest(self.options.contest)
        self.progress.is_created = True
        _check_running(found)
        return await self._clients_with_tokens()

    async def _clients_with_tokens(self) -> list[AsyncClient]:
        made = await self.organiser.contest_create_tokens(self.options.contest, expires_in_hours=_TOKEN_HOURS)
        return self._in_order({item.username: item.secret for item in made})

    async def _log_in(self, passwords: Mapping[str, str]) -> list[AsyncClient]:
        turns = asyncio.Semaphore(_LOGINS)

        async def log_in(name: str) -> tuple[str, str]:
            async with turns:
                made = await self.connect(None).login(
                    name, passwords[name], token_name=self.options.contest, expires_in_days=2
                )
            return name, made.secret

        return self._in_order(dict(await asyncio.gather(*map(log_in, passwords))))

    def _in_order(self, secrets: Mapping[str, str]) -> list[AsyncClient]:
        names = [_team_name(self.options.contest, team) for team in range(self.options.plan.teams)]
        missing = [name for name in names if name not in secrets]
        if missing:
            raise InvalidInput(
                f"teams: the contest has no account {missing[0]} ({len(missing)} missing); use the same --teams as "
                "before.",
                field="teams",
            )
        return [self.connect(secrets[name]) for name in names]

    async def _start(self) -> float:
        """Start the contest; return the seconds since its start."""
        if not self.options.is_resumed:
            await self.organiser.contest_start(self.options.contest)
            return 0.0
        return (await self.organiser.contest(self.options.contest)).contest_time_sec or 0.0

    # During the contest.

    async def _run_teams(self, clients: Sequence[AsyncClient], accepted: asyncio.Queue[int | None]) -> None:
        """All teams at once; each submits in order, so that its attempts are counted in order."""
        plan = self.options.plan
        prefix = f"{self.options.contest}-{plan.digest()}"
        work: defaultdict[int, list[tuple[int, PlannedSubmission]]] = defaultdict(list)
        for index, item in enumerate(plan.submissions):
            work[item.team].append((index, item))

        async def submit_all(team: int) -> None:
            client = clients[team]
            for index, item in work[team]:
                await self._wait_until(item.at)
                if await self._submit(client, index, item, f"{prefix}-{index}"):
                    accepted.put_nowait(index)
                    await self._read_scoreboard(client)

        async def ask(item: PlannedQuestion) -> None:
            await self._wait_until(item.at)
            text = f"Team {item.team + 1}: is the input always as in the samples?"
            request = clients[item.team].clarification_ask
            made = await self._try(
                lambda: request(self.options.contest, text, problem=self.labels[item.problem]), "question"
            )
            if made is not None:
                self.progress.asked[item.team] = made.number

        questions = () if self.options.is_resumed else plan.questions
        await asyncio.gather(*(submit_all(team) for team in sorted(work)), *(ask(item) for item in questions))
        self.submitted_at = time.monotonic()
        self.progress.submitted_sec = self.submitted_at - self.start
        accepted.put_nowait(None)

    async def _wait_until(self, at: float) -> None:
        await asyncio.sleep(max(0.0, self.start + at * self.options.duration_sec - time.monotonic()))

    async def _try(self, request: Callable[[], Awaitable[T]], what: str) -> T | None:
        """The response to a request of a team; a refused or failed one is counted by its reason."""
        try:
            async with self.gate:
                return await request()
        except ClientError as error:
            self.progress.errors[f"{what}: {error}"] += 1
            return None

    async def _submit(self, client: AsyncClient, index: int, item: PlannedSubmission, key: str) -> bool:
        program, label = item.program, self.labels[item.problem]
        made = await self._try(
            lambda: client.submit(label, program.language, program.source, contest=self.options.contest, key=key),
            "submission",
        )
        if made is None:
            return False
        self.progress.accepted[index] = made.submission_id
        return True

    async def _read_scoreboard(self, client: AsyncClient) -> None:
        async def read() -> None:
            began = time.monotonic()  # not before the turn of this team
            await client.scoreboard(self.options.contest, limit=50)
            self.progress.scoreboard_ms.append((time.monotonic() - began) * 1000)

        await self._try(read, "scoreboard")

    async def _run_jury(self) -> None:
        """Answer questions until all teams have submitted and no question is open."""
        contest = self.options.contest
        while True:
            is_last = self.submitted_at is not None
            found = await self.organiser.clarifications(contest, only_open=True, limit=100)
            for item in found.items:
                await self.organiser.clarification_answer(contest, item.id, "Yes; read the statement.")
            if is_last and not found.items:
                return
            await asyncio.sleep(_JURY_SEC)

    async def _collect_verdicts(self, accepted: asyncio.Queue[int | None]) -> None:
        """Wait for the verdicts, several at a time: one at a time would be slower than the judging."""

        async def collect() -> None:
            while (index := await accepted.get()) is not None:
                await self._wait_for_verdict(index)
            accepted.put_nowait(None)  # for the next one

        await asyncio.gather(*(collect() for _ in range(_WAITS)))

    async def _wait_for_verdict(self, index: int) -> None:
        """Wait until a submission is judged, or the time after the last submission is over."""
        while not self._is_late():
            found = await self.organiser.submission(self.progress.accepted[index], wait_sec=_LONG_POLL_SEC)
            if found.is_finished:
                self.progress.ended[index] = found
                return

    def _is_late(self) -> bool:
        return self.submitted_at is not None and time.monotonic() > self.submitted_at + self.options.timeout_sec

    # After the contest.

    async def _read_answers(self, clients: Sequence[AsyncClient]) -> None:
        """Every team that asked reads its clarifications."""

        async def read(team: int, number: int) -> None:
            found = await self._try(lambda: clients[team].clarifications(self.options.contest, limit=100), "answer")
            if found is None:
                return
            self.progress.answers_read += any(item.reply_to == number for item in found.items)
            newest = max((item.number for item in found.items), default=number)
            await self._try(lambda: clients[team].clarifications_mark_read(self.options.contest, newest), "answer")

        await asyncio.gather(*(read(team, number) for team, number in self.progress.asked.items()))

    async def _read_results(self) -> None:
        contest, progress = self.options.contest, self.progress
        cursor: str | None = None
        while True:
            page = await self.organiser.jury_submissions(contest, limit=100, cursor=cursor)
            progress.listed += page.items
            cursor = page.next
            if cursor is None:
                break
        progress.scoreboard = await self._read_board()
        until = time.monotonic() + _BOARD_SEC
        while _has_pending(progress.scoreboard) and not self._has_unjudged() and time.monotonic() < until:
            await asyncio.sleep(_BOARD_POLL_SEC)
            progress.scoreboard = await self._read_board()

    async def _read_board(self) -> ScoreboardRead:
        """All rows of the jury's view."""
        contest = self.options.contest
        first = await self.organiser.scoreboard(contest, view="jury", limit=_ROWS)
        rows = list(first.rows)
        while len(rows) < first.total:
            page = await self.organiser.scoreboard(contest, view="jury", offset=len(rows), limit=_ROWS)
            if not page.rows:
                break
            rows += page.rows
        return replace(first, rows=rows)

    def _has_unjudged(self) -> bool:
        return len(self.progress.ended) < len(self.progress.accepted)


def _has_pending(board: ScoreboardRead) -> bool:
    return any(cell.pending for row in board.rows for cell in row.cells)


def _team_name(contest: str, team: int) -> str:
    """The name of a team and of its account."""
    return f"{contest[:28].lower()}-{team + 1:05}"


def _check_running(contest: ContestDetail) -> None:
    if contest.state is not ContestState.PUBLISHED or contest.phase not in (ContestPhase.RUNNING, ContestPhase.FROZEN):
        state = contest.phase if contest.state is ContestState.PUBLISHED else contest.state
        raise InvalidInput(
            f"contest: {contest.slug} is not running ({state}); a simulation can be resumed only while its contest "
            "runs. Start a new one with another name.",
            field="contest",
        )
    if contest.is_paused:
        raise InvalidInput(
            f"contest: {contest.slug} is paused; resume it with `adjudge contest resume {contest.slug}`.",
            field="contest",
        )
