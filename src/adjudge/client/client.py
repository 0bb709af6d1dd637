"""The two clients: the same operations, one blocking, one with asyncio. Nothing is decided here."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Coroutine, Generator, Iterator
from functools import partial, update_wrapper
from typing import Any, Concatenate, Generic, ParamSpec, TypeVar

import httpx

from adjudge import __version__
from adjudge.client import chains as chaining
from adjudge.client import judging, problem_imports
from adjudge.client.errors import UnreachableError
from adjudge.client.retry import ClientRetryPolicy
from adjudge.client.sans_io import Emit, Flow, Program, Step
from adjudge.client.transport import AsyncTransport, SyncTransport, advance

P = ParamSpec("P")
T = TypeVar("T")
E = TypeVar("E")


class _Operation(Generic[P, T]):
    """An operation of the blocking client: a method made of a program."""

    def __init__(self, program: Callable[Concatenate[ClientRetryPolicy, P], Program[T]]) -> None:
        self._program = program

    def __get__(self, client: Client, owner: type[Client]) -> Callable[P, T]:
        def call(*args: P.args, **named: P.kwargs) -> T:
            return client.run_operation(self._program(client.patience, *args, **named))

        return update_wrapper(call, self._program)


class _StreamOperation(Generic[P, E]):
    """The same for what tells one thing after the other."""

    def __init__(self, flow: Callable[Concatenate[ClientRetryPolicy, P], Flow[E]]) -> None:
        self._flow = flow

    def __get__(self, client: Client, owner: type[Client]) -> Callable[P, Iterator[E]]:
        def call(*args: P.args, **named: P.kwargs) -> Iterator[E]:
            return client.iterate(self._flow(client.patience, *args, **named))

        return update_wrapper(call, self._flow)


class _AsyncOperation(Generic[P, T]):
    """An operation of the client with asyncio."""

    def __init__(self, program: Callable[Concatenate[ClientRetryPolicy, P], Program[T]]) -> None:
        self._program = program

    def __get__(self, client: AsyncClient, owner: type[AsyncClient]) -> Callable[P, Coroutine[Any, Any, T]]:
        def call(*args: P.args, **named: P.kwargs) -> Coroutine[Any, Any, T]:
            return client.perform(self._program(client.patience, *args, **named))

        return update_wrapper(call, self._program)


class _AsyncStreamOperation(Generic[P, E]):
    """The same for what tells one thing after the other."""

    def __init__(self, flow: Callable[Concatenate[ClientRetryPolicy, P], Flow[E]]) -> None:
        self._flow = flow

    def __get__(self, client: AsyncClient, owner: type[AsyncClient]) -> Callable[P, AsyncIterator[E]]:
        def call(*args: P.args, **named: P.kwargs) -> AsyncIterator[E]:
            return client.told(self._flow(client.patience, *args, **named))

        return update_wrapper(call, self._flow)


class Client:
    """Asks a server and waits for its answers. Use it as a context manager; not from several threads at once."""

    def __init__(
        self,
        url: str,
        token: str | None = None,
        *,
        timeout_sec: float = 30.0,
        patience: ClientRetryPolicy | None = None,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        self.patience = patience or ClientRetryPolicy()
        self._timeout_sec = timeout_sec
        self._http = httpx.Client(base_url=_checked(url), headers=_headers(token), transport=transport)

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Let the connections go."""
        self._http.close()

    def run_operation(self, program: Program[T]) -> T:
        """Take every step of a program; return what it came to."""
        steps = self._steps(program)
        try:
            while True:
                next(steps)  # what is told on the way is passed over
        except StopIteration as end:
            came_to: T = end.value
            return came_to

    def iterate(self, flow: Flow[E]) -> Iterator[E]:
        """Take every step of a flow; give what it tells."""
        yield from self._steps(flow)

    def _steps(self, program: Generator[Step | Emit[Any], Any, T]) -> Generator[Any, None, T]:
        with SyncTransport(self._http, self._timeout_sec) as line:
            proceed: Callable[[], Step | Emit[Any]] = partial(next, program)
            while True:
                try:
                    step = proceed()
                except StopIteration as end:
                    came_to: T = end.value
                    return came_to
                if isinstance(step, Emit):
                    yield step.value
                    proceed = partial(program.send, None)
                    continue
                try:
                    proceed = partial(program.send, line.take(step))
                except UnreachableError as error:
                    proceed = partial(program.throw, error)

    log_in = _Operation(judging.login)
    revoke_token = _Operation(judging.revoke_token)
    me = _Operation(judging.me)
    languages = _Operation(judging.languages)
    problems = _Operation(judging.problems)
    problem = _Operation(judging.problem)
    submit = _Operation(judging.submit)
    submit_batch = _Operation(judging.submit_batch)
    submission = _Operation(judging.submission)
    submissions = _Operation(judging.submissions)
    results = _Operation(judging.results)
    source = _Operation(judging.source)
    cancel = _Operation(judging.cancel)
    watch = _StreamOperation(judging.watch)
    wait = _Operation(judging.wait)
    execute = _Operation(judging.execute)
    execute_batch = _Operation(judging.execute_batch)
    execution = _Operation(judging.execution)
    problem_import = _Operation(problem_imports.problem_import)
    problem_imported = _Operation(problem_imports.import_status)
    import_watch = _StreamOperation(problem_imports.import_watch)
    import_wait = _Operation(problem_imports.import_wait)
    rejudge = _Operation(judging.rejudge)
    rejudge_batches = _Operation(judging.rejudge_batches)
    rejudge_batch = _Operation(judging.rejudge_batch)
    rejudge_preview = _Operation(judging.rejudge_preview)
    rejudge_apply = _Operation(judging.rejudge_apply)
    rejudge_discard = _Operation(judging.rejudge_discard)
    rejudge_cancel = _Operation(judging.rejudge_cancel)
    chains = _Operation(chaining.chains)
    chain = _Operation(chaining.chain)
    chain_version = _Operation(chaining.chain_version)
    chain_triggers = _Operation(chaining.chain_triggers)
    chain_apply = _Operation(chaining.chain_apply)
    secrets = _Operation(chaining.secrets)
    secret_set = _Operation(chaining.secret_set)
    secret_delete = _Operation(chaining.secret_delete)
    chain_switch = _Operation(chaining.chain_set_enabled)
    chain_start = _Operation(chaining.chain_start)
    runs = _Operation(chaining.runs)
    run = _Operation(chaining.run)
    run_nodes = _Operation(chaining.run_nodes)
    node = _Operation(chaining.node)
    run_watch = _StreamOperation(chaining.run_watch)
    run_wait = _Operation(chaining.run_wait)
    run_stop = _Operation(chaining.run_stop)
    run_rerun = _Operation(chaining.run_rerun)
    node_log = _Operation(chaining.node_log)
    node_artifact = _Operation(chaining.node_artifact)
    node_file = _Operation(chaining.node_file)
    file_store = _Operation(chaining.file_upload)
    node_retry = _Operation(chaining.node_retry)
    node_complete = _Operation(chaining.node_complete)
    node_decide = _Operation(chaining.node_approve)


class AsyncClient:
    """Asks a server without blocking the loop. Use it as a context manager."""

    def __init__(
        self,
        url: str,
        token: str | None = None,
        *,
        timeout_sec: float = 30.0,
        patience: ClientRetryPolicy | None = None,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        self.patience = patience or ClientRetryPolicy()
        self._timeout_sec = timeout_sec
        self._http = httpx.AsyncClient(base_url=_checked(url), headers=_headers(token), transport=transport)

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Let the connections go."""
        await self._http.aclose()

    async def perform(self, program: Program[T]) -> T:
        """Take every step of a program; return what it came to."""
        async with AsyncTransport(self._http, self._timeout_sec) as line:
            proceed: Callable[[], Step | Emit[Any]] = partial(next, program)
            while True:
                try:
                    step = proceed()
                except StopIteration as end:
                    came_to: T = end.value
                    return came_to
                proceed = partial(program.send, None) if isinstance(step, Emit) else await advance(line, step, program)

    async def told(self, flow: Flow[E]) -> AsyncIterator[E]:
        """Take every step of a flow; give what it tells."""
        async with AsyncTransport(self._http, self._timeout_sec) as line:
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
                    proceed = await advance(line, step, flow)

    log_in = _AsyncOperation(judging.login)
    revoke_token = _AsyncOperation(judging.revoke_token)
    me = _AsyncOperation(judging.me)
    languages = _AsyncOperation(judging.languages)
    problems = _AsyncOperation(judging.problems)
    problem = _AsyncOperation(judging.problem)
    submit = _AsyncOperation(judging.submit)
    submit_batch = _AsyncOperation(judging.submit_batch)
    submission = _AsyncOperation(judging.submission)
    submissions = _AsyncOperation(judging.submissions)
    results = _AsyncOperation(judging.results)
    source = _AsyncOperation(judging.source)
    cancel = _AsyncOperation(judging.cancel)
    watch = _AsyncStreamOperation(judging.watch)
    wait = _AsyncOperation(judging.wait)
    execute = _AsyncOperation(judging.execute)
    execute_batch = _AsyncOperation(judging.execute_batch)
    execution = _AsyncOperation(judging.execution)
    problem_import = _AsyncOperation(problem_imports.problem_import)
    problem_imported = _AsyncOperation(problem_imports.import_status)
    import_watch = _AsyncStreamOperation(problem_imports.import_watch)
    import_wait = _AsyncOperation(problem_imports.import_wait)
    rejudge = _AsyncOperation(judging.rejudge)
    rejudge_batches = _AsyncOperation(judging.rejudge_batches)
    rejudge_batch = _AsyncOperation(judging.rejudge_batch)
    rejudge_preview = _AsyncOperation(judging.rejudge_preview)
    rejudge_apply = _AsyncOperation(judging.rejudge_apply)
    rejudge_discard = _AsyncOperation(judging.rejudge_discard)
    rejudge_cancel = _AsyncOperation(judging.rejudge_cancel)
    chains = _AsyncOperation(chaining.chains)
    chain = _AsyncOperation(chaining.chain)
    chain_version = _AsyncOperation(chaining.chain_version)
    chain_triggers = _AsyncOperation(chaining.chain_triggers)
    chain_apply = _AsyncOperation(chaining.chain_apply)
    secrets = _AsyncOperation(chaining.secrets)
    secret_set = _AsyncOperation(chaining.secret_set)
    secret_delete = _AsyncOperation(chaining.secret_delete)
    chain_switch = _AsyncOperation(chaining.chain_set_enabled)
    chain_start = _AsyncOperation(chaining.chain_start)
    runs = _AsyncOperation(chaining.runs)
    run = _AsyncOperation(chaining.run)
    run_nodes = _AsyncOperation(chaining.run_nodes)
    node = _AsyncOperation(chaining.node)
    run_watch = _AsyncStreamOperation(chaining.run_watch)
    run_wait = _AsyncOperation(chaining.run_wait)
    run_stop = _AsyncOperation(chaining.run_stop)
    run_rerun = _AsyncOperation(chaining.run_rerun)
    node_log = _AsyncOperation(chaining.node_log)
    node_artifact = _AsyncOperation(chaining.node_artifact)
    node_file = _AsyncOperation(chaining.node_file)
    file_store = _AsyncOperation(chaining.file_upload)
    node_retry = _AsyncOperation(chaining.node_retry)
    node_complete = _AsyncOperation(chaining.node_complete)
    node_decide = _AsyncOperation(chaining.node_approve)


def _checked(url: str) -> str:
    """Refuse what is no address, before anything is sent."""
    if not url.startswith(("http://", "https://")):
        raise ValueError(f"{url!r}: invalid server URL; it must start with https:// or http://.")
    return url.rstrip("/")


def _headers(token: str | None) -> dict[str, str]:
    who = {"Authorization": f"Bearer {token}"} if token else {}
    return {"User-Agent": f"adjudge/{__version__}", "Accept": "application/json"} | who
