"""The blocking and the asyncio client. Both run the same operations; ``Operations`` lists them once."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Coroutine, Generator, Iterator
from functools import partial, update_wrapper
from typing import Any, Concatenate, Generic, ParamSpec, TypeVar, overload

import httpx

from adjudge import __version__
from adjudge.client import account as account_operations
from adjudge.client import chain_runs as chain_runs_operations
from adjudge.client import chains as chains_operations
from adjudge.client import clarifications as clarifications_operations
from adjudge.client import contest_balloons as contest_balloons_operations
from adjudge.client import contest_jury as contest_jury_operations
from adjudge.client import contest_materials as contest_materials_operations
from adjudge.client import contest_package as contest_package_operations
from adjudge.client import contest_participants as contest_participants_operations
from adjudge.client import contest_prints as contest_prints_operations
from adjudge.client import contest_verdicts as contest_verdicts_operations
from adjudge.client import contests as contests_operations
from adjudge.client import evaluations as evaluations_operations
from adjudge.client import executions as executions_operations
from adjudge.client import problem_imports as problem_imports_operations
from adjudge.client import problems as problems_operations
from adjudge.client import rejudge as rejudge_operations
from adjudge.client import scoreboards as scoreboards_operations
from adjudge.client import submissions as submissions_operations
from adjudge.client.errors import UnreachableError
from adjudge.client.retry import ClientRetryPolicy
from adjudge.client.sans_io import Emit, Flow, Program, Step
from adjudge.client.transport import AsyncTransport, SyncTransport, advance

P = ParamSpec("P")
T = TypeVar("T")
E = TypeVar("E")


class _Operation(Generic[P, T]):
    """A method made of a program: it blocks on ``Client`` and returns a coroutine on ``AsyncClient``."""

    def __init__(self, program: Callable[Concatenate[ClientRetryPolicy, P], Program[T]]) -> None:
        self._program = program

    @overload
    def __get__(self, client: Client, owner: type[Client]) -> Callable[P, T]: ...

    @overload
    def __get__(self, client: AsyncClient, owner: type[AsyncClient]) -> Callable[P, Coroutine[Any, Any, T]]: ...

    def __get__(self, client: Client | AsyncClient, owner: type[Client | AsyncClient]) -> Callable[P, Any]:
        def call(*args: P.args, **named: P.kwargs) -> Any:
            return client.run_operation(self._program(client.retry, *args, **named))

        return update_wrapper(call, self._program)


class _StreamOperation(Generic[P, E]):
    """A method that returns an iterator on ``Client`` and an asynchronous iterator on ``AsyncClient``."""

    def __init__(self, flow: Callable[Concatenate[ClientRetryPolicy, P], Flow[E]]) -> None:
        self._flow = flow

    @overload
    def __get__(self, client: Client, owner: type[Client]) -> Callable[P, Iterator[E]]: ...

    @overload
    def __get__(self, client: AsyncClient, owner: type[AsyncClient]) -> Callable[P, AsyncIterator[E]]: ...

    def __get__(self, client: Client | AsyncClient, owner: type[Client | AsyncClient]) -> Callable[P, Any]:
        def call(*args: P.args, **named: P.kwargs) -> Any:
            return client.iterate(self._flow(client.retry, *args, **named))

        return update_wrapper(call, self._flow)


class Operations:
    """The operations of both clients."""

    login = _Operation(account_operations.login)
    revoke_token = _Operation(account_operations.revoke_token)
    me = _Operation(account_operations.me)
    languages = _Operation(problems_operations.languages)
    problems = _Operation(problems_operations.problems)
    problem = _Operation(problems_operations.problem)
    submit = _Operation(submissions_operations.submit)
    submit_batch = _Operation(submissions_operations.submit_batch)
    submission = _Operation(submissions_operations.submission)
    submissions = _Operation(submissions_operations.submissions)
    results = _Operation(submissions_operations.results)
    source = _Operation(submissions_operations.source)
    files = _Operation(submissions_operations.files)
    archive = _Operation(submissions_operations.archive)
    cancel = _Operation(submissions_operations.cancel)
    watch = _StreamOperation(submissions_operations.watch)
    wait = _Operation(submissions_operations.wait)
    execute = _Operation(executions_operations.execute)
    execute_batch = _Operation(executions_operations.execute_batch)
    execution = _Operation(executions_operations.execution)
    evaluate = _Operation(evaluations_operations.evaluate)
    evaluations = _Operation(evaluations_operations.evaluations)
    evaluation = _Operation(evaluations_operations.evaluation)
    evaluation_add = _Operation(evaluations_operations.evaluation_add)
    evaluation_results = _Operation(evaluations_operations.evaluation_results)
    evaluation_cancel = _Operation(evaluations_operations.evaluation_cancel)
    problem_import = _Operation(problem_imports_operations.problem_import)
    import_status = _Operation(problem_imports_operations.import_status)
    import_watch = _StreamOperation(problem_imports_operations.import_watch)
    import_wait = _Operation(problem_imports_operations.import_wait)
    rejudge = _Operation(rejudge_operations.rejudge)
    rejudge_batches = _Operation(rejudge_operations.rejudge_batches)
    rejudge_batch = _Operation(rejudge_operations.rejudge_batch)
    rejudge_preview = _Operation(rejudge_operations.rejudge_preview)
    rejudge_apply = _Operation(rejudge_operations.rejudge_apply)
    rejudge_discard = _Operation(rejudge_operations.rejudge_discard)
    rejudge_cancel = _Operation(rejudge_operations.rejudge_cancel)
    scoreboard = _Operation(scoreboards_operations.scoreboard)
    scoreboard_export = _Operation(scoreboards_operations.scoreboard_export)
    awards = _Operation(scoreboards_operations.awards)
    set_awards = _Operation(scoreboards_operations.set_awards)
    resolver = _Operation(scoreboards_operations.resolver)
    contest_statistics = _Operation(scoreboards_operations.contest_statistics)
    contest_submissions = _Operation(contest_jury_operations.contest_submissions)
    jury_submissions = _Operation(contest_jury_operations.jury_submissions)
    jury_submission = _Operation(contest_jury_operations.jury_submission)
    jury_verify = _Operation(contest_jury_operations.jury_verify)
    jury_ignore = _Operation(contest_jury_operations.jury_ignore)
    jury_make_official = _Operation(contest_jury_operations.jury_make_official)
    jury_override = _Operation(contest_jury_operations.jury_override)
    jury_adjust_penalty = _Operation(contest_jury_operations.jury_adjust_penalty)
    jury_pause_judging = _Operation(contest_jury_operations.jury_pause_judging)
    contests = _Operation(contests_operations.contests)
    contest = _Operation(contests_operations.contest)
    contest_create = _Operation(contests_operations.contest_create)
    contest_update = _Operation(contests_operations.contest_update)
    contest_clone = _Operation(contests_operations.contest_clone)
    contest_problems = _Operation(contests_operations.contest_problems)
    contest_problem = _Operation(contests_operations.contest_problem)
    contest_set_problems = _Operation(contests_operations.contest_set_problems)
    contest_roles = _Operation(contests_operations.contest_roles)
    contest_grant_role = _Operation(contests_operations.contest_grant_role)
    contest_revoke_role = _Operation(contests_operations.contest_revoke_role)
    contest_publish = _Operation(contests_operations.contest_publish)
    contest_unpublish = _Operation(contests_operations.contest_unpublish)
    contest_cancel = _Operation(contests_operations.contest_cancel)
    contest_blockers = _Operation(contests_operations.contest_blockers)
    contest_finalize = _Operation(contests_operations.contest_finalize)
    contest_reopen = _Operation(contests_operations.contest_reopen)
    contest_close_updates = _Operation(contests_operations.contest_close_updates)
    contest_log = _Operation(contests_operations.contest_log)
    contest_start = _Operation(contests_operations.contest_start)
    contest_pause_countdown = _Operation(contests_operations.contest_pause_countdown)
    contest_resume_countdown = _Operation(contests_operations.contest_resume_countdown)
    contest_end = _Operation(contests_operations.contest_end)
    contest_extend = _Operation(contests_operations.contest_extend)
    contest_pause = _Operation(contests_operations.contest_pause)
    contest_resume = _Operation(contests_operations.contest_resume)
    contest_freeze = _Operation(contests_operations.contest_freeze)
    contest_thaw = _Operation(contests_operations.contest_thaw)
    contest_intervals = _Operation(contests_operations.contest_intervals)
    contest_remove_interval = _Operation(contests_operations.contest_remove_interval)
    contest_undo_interval = _Operation(contests_operations.contest_undo_interval)
    contest_register = _Operation(contest_participants_operations.contest_register)
    contest_participants = _Operation(contest_participants_operations.contest_participants)
    contest_add_participant = _Operation(contest_participants_operations.contest_add_participant)
    contest_update_participant = _Operation(contest_participants_operations.contest_update_participant)
    contest_import_teams = _Operation(contest_participants_operations.contest_import_teams)
    contest_balloons = _Operation(contest_balloons_operations.contest_balloons)
    contest_deliver_balloon = _Operation(contest_balloons_operations.contest_deliver_balloon)
    contest_undo_balloon = _Operation(contest_balloons_operations.contest_undo_balloon)
    contest_collect_balloon = _Operation(contest_balloons_operations.contest_collect_balloon)
    contest_start_virtual = _Operation(contest_participants_operations.contest_start_virtual)
    contest_practise = _Operation(contest_participants_operations.contest_practise)
    contest_remove_participant = _Operation(contest_participants_operations.contest_remove_participant)
    contest_groups = _Operation(contest_participants_operations.contest_groups)
    contest_set_groups = _Operation(contest_participants_operations.contest_set_groups)
    contest_set_group_times = _Operation(contest_participants_operations.contest_set_group_times)
    contest_organizations = _Operation(contest_participants_operations.contest_organizations)
    contest_save_organization = _Operation(contest_participants_operations.contest_save_organization)
    contest_invitations = _Operation(contest_participants_operations.contest_invitations)
    contest_invite = _Operation(contest_participants_operations.contest_invite)
    contest_revoke_invitation = _Operation(contest_participants_operations.contest_revoke_invitation)
    contest_accounts = _Operation(contest_participants_operations.contest_accounts)
    contest_create_accounts = _Operation(contest_participants_operations.contest_create_accounts)
    contest_renew_passwords = _Operation(contest_participants_operations.contest_renew_passwords)
    contest_disable_accounts = _Operation(contest_participants_operations.contest_disable_accounts)
    contest_enable_accounts = _Operation(contest_participants_operations.contest_enable_accounts)
    contest_create_tokens = _Operation(contest_participants_operations.contest_create_tokens)
    clarifications = _Operation(clarifications_operations.clarifications)
    clarification_ask = _Operation(clarifications_operations.clarification_ask)
    clarification_answer = _Operation(clarifications_operations.clarification_answer)
    clarification_claim = _Operation(clarifications_operations.clarification_claim)
    clarification_close = _Operation(clarifications_operations.clarification_close)
    clarifications_unread = _Operation(clarifications_operations.clarifications_unread)
    clarifications_mark_read = _Operation(clarifications_operations.clarifications_mark_read)
    verdicts_unread = _Operation(contest_verdicts_operations.verdicts_unread)
    verdicts_mark_read = _Operation(contest_verdicts_operations.verdicts_mark_read)
    announce = _Operation(clarifications_operations.announce)
    contest_prints = _Operation(contest_prints_operations.contest_prints)
    contest_print = _Operation(contest_prints_operations.contest_print)
    contest_print_text = _Operation(contest_prints_operations.contest_print_text)
    contest_print_pages = _Operation(contest_prints_operations.contest_print_pages)
    contest_claim_print = _Operation(contest_prints_operations.contest_claim_print)
    contest_finish_print = _Operation(contest_prints_operations.contest_finish_print)
    contest_requeue_print = _Operation(contest_prints_operations.contest_requeue_print)
    contest_materials = _Operation(contest_materials_operations.contest_materials)
    contest_material = _Operation(contest_materials_operations.contest_material)
    contest_save_material = _Operation(contest_materials_operations.contest_save_material)
    contest_update_material = _Operation(contest_materials_operations.contest_update_material)
    contest_delete_material = _Operation(contest_materials_operations.contest_delete_material)
    contest_export = _Operation(contest_package_operations.contest_export)
    contest_import = _Operation(contest_package_operations.contest_import)
    chains = _Operation(chains_operations.chains)
    chain = _Operation(chains_operations.chain)
    chain_version = _Operation(chains_operations.chain_version)
    chain_triggers = _Operation(chains_operations.chain_triggers)
    chain_apply = _Operation(chains_operations.chain_apply)
    secrets = _Operation(chains_operations.secrets)
    secret_set = _Operation(chains_operations.secret_set)
    secret_delete = _Operation(chains_operations.secret_delete)
    chain_set_enabled = _Operation(chains_operations.chain_set_enabled)
    chain_start = _Operation(chain_runs_operations.chain_start)
    runs = _Operation(chain_runs_operations.runs)
    run = _Operation(chain_runs_operations.run)
    run_by_number = _Operation(chain_runs_operations.run_by_number)
    run_nodes = _Operation(chain_runs_operations.run_nodes)
    node = _Operation(chain_runs_operations.node)
    run_watch = _StreamOperation(chain_runs_operations.run_watch)
    run_wait = _Operation(chain_runs_operations.run_wait)
    run_stop = _Operation(chain_runs_operations.run_stop)
    run_rerun = _Operation(chain_runs_operations.run_rerun)
    node_log = _Operation(chain_runs_operations.node_log)
    node_artifact = _Operation(chain_runs_operations.node_artifact)
    node_file = _Operation(chain_runs_operations.node_file)
    file_upload = _Operation(chain_runs_operations.file_upload)
    node_retry = _Operation(chain_runs_operations.node_retry)
    node_complete = _Operation(chain_runs_operations.node_complete)
    node_approve = _Operation(chain_runs_operations.node_approve)
    node_reject = _Operation(chain_runs_operations.node_reject)


class Client(Operations):
    """Blocking client. Use it as a context manager, from one thread at a time."""

    def __init__(
        self,
        url: str,
        token: str | None = None,
        *,
        timeout_sec: float = 30.0,
        retry: ClientRetryPolicy | None = None,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        self.retry = retry or ClientRetryPolicy()
        self._timeout_sec = timeout_sec
        self._http = httpx.Client(base_url=_base_url(url), headers=_headers(token), transport=transport)

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def run_operation(self, program: Program[T]) -> T:
        """Run a program to its end and return its result; emitted values are dropped."""
        steps = self._steps(program)
        try:
            while True:
                next(steps)
        except StopIteration as end:
            result: T = end.value
            return result

    def iterate(self, flow: Flow[E]) -> Iterator[E]:
        """Run a flow and yield the values that it emits."""
        yield from self._steps(flow)

    def _steps(self, program: Generator[Step | Emit[Any], Any, T]) -> Generator[Any, None, T]:
        with SyncTransport(self._http, self._timeout_sec) as transport:
            proceed: Callable[[], Step | Emit[Any]] = partial(next, program)
            while True:
                try:
                    step = proceed()
                except StopIteration as end:
                    result: T = end.value
                    return result
                if isinstance(step, Emit):
                    yield step.value
                    proceed = partial(program.send, None)
                    continue
                try:
                    proceed = partial(program.send, transport.take(step))
                except UnreachableError as error:
                    proceed = partial(program.throw, error)


class AsyncClient(Operations):
    """Client for asyncio. Use it as an asynchronous context manager."""

    def __init__(
        self,
        url: str,
        token: str | None = None,
        *,
        timeout_sec: float = 30.0,
        retry: ClientRetryPolicy | None = None,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        self.retry = retry or ClientRetryPolicy()
        self._timeout_sec = timeout_sec
        self._http = httpx.AsyncClient(base_url=_base_url(url), headers=_headers(token), transport=transport)

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    async def run_operation(self, program: Program[T]) -> T:
        """Run a program to its end and return its result; emitted values are dropped."""
        async with AsyncTransport(self._http, self._timeout_sec) as transport:
            proceed: Callable[[], Step | Emit[Any]] = partial(next, program)
            while True:
                try:
                    step = proceed()
                except StopIteration as end:
                    result: T = end.value
                    return result
                if isinstance(step, Emit):
                    proceed = partial(program.send, None)
                else:
                    proceed = await advance(transport, step, program)

    async def iterate(self, flow: Flow[E]) -> AsyncIterator[E]:
        """Run a flow and yield the values that it emits."""
        async with AsyncTransport(self._http, self._timeout_sec) as transport:
            proceed: Callable[[], Step | Emit[E]] = partial(next, flow)
            while True:
                try:
                    step = proceed()
                except StopIteration:
                    return
                if isinstance(step, Emit):
                    yield step.value
                    proceed = partial(flow.send, None)
                else:
                    proceed = await advance(transport, step, flow)


def _base_url(url: str) -> str:
    """Check a server URL before anything is sent."""
    if not url.startswith(("http://", "https://")):
        raise ValueError(f"{url!r}: invalid server URL; it must start with https:// or http://.")
    return url.rstrip("/")


def _headers(token: str | None) -> dict[str, str]:
    authorization = {"Authorization": f"Bearer {token}"} if token else {}
    return {"User-Agent": f"adjudge/{__version__}", "Accept": "application/json"} | authorization
