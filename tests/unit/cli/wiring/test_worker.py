"""Settings of a worker."""

from __future__ import annotations

import re
import socket
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import httpx
import pytest

from adjudge import settings
from adjudge.blobs.cache import BlobCache
from adjudge.blobs.directory import DirectoryBlobStore
from adjudge.cli.wiring.judge import open_judge
from adjudge.cli.wiring.process import open_health_server
from adjudge.cli.wiring.worker import _health, _info, _with_capabilities, _worker_settings
from adjudge.domain.errors import InvalidInput, Unavailable
from adjudge.judge.compile_cache import CompileCache
from adjudge.judge.languages import Language, Languages
from adjudge.judge.pipeline import Judge
from adjudge.observe.health_server import LoopHeartbeat
from adjudge.registry import ProcessHealth
from adjudge.sandbox import Sandbox
from adjudge.worker.worker import Worker
from tests.support.server_process import free_port


def test_consumer_name() -> None:
    plain = settings.load(environ={})
    assert _worker_settings(plain, "w-1", 2).consumer == "w-1"
    named = settings.load(environ={"JOB_STREAM_CONSUMER": "reader-7", "WORKER_ID": "w-1"})
    options = _worker_settings(named, "w-1", 2)
    assert (options.name, options.consumer) == ("w-1", "reader-7")


def test_limits_and_rate_are_settings() -> None:
    text = "language:java=1, kind:node = 4, node:problem.verify=2"
    loaded = settings.load(environ={"ADJUDGE_WORKER_LIMITS": text})
    assert _worker_settings(loaded, "w", 2).limits == {"language:java": 1, "kind:node": 4, "node:problem.verify": 2}
    assert settings.load(environ={"ADJUDGE_WORKER_RATE_PER_SEC": "2.5"}).worker.rate_per_sec == 2.5


@pytest.mark.parametrize("text", ["java=1", "language:java", "language:java=0", "language:java=1;kind:node=2"])
def test_invalid_limit_is_rejected(text: str) -> None:
    with pytest.raises(InvalidInput, match="WORKER_LIMITS"):
        settings.load(environ={"ADJUDGE_WORKER_LIMITS": text})


@pytest.mark.parametrize(
    ("environ", "apart"), [({}, True), ({"ADJUDGE_WORKER_EXECUTIONS_BESIDE_JUDGING": "true"}, False)]
)
async def test_executions_run_in_parallel_with_judging_only_if_allowed(
    monkeypatch: pytest.MonkeyPatch, environ: dict[str, str], apart: bool
) -> None:
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
    async with open_judge(1) as judge:
        assert judge.exclusive_gate.executions_apart is apart


async def _no_metrics() -> bytes:
    return b""


async def test_process_is_ready_while_its_components_answer_and_it_does_not_drain() -> None:
    port, is_draining, error = free_port(), False, ""
    loaded = settings.load(environ={"ADJUDGE_METRICS_PORT": str(port)})

    async def answers() -> None:
        if error:
            raise Unavailable(error)

    async with (
        open_health_server(loaded, _no_metrics, {"database": answers}, is_draining=lambda: is_draining),
        httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}") as client,
    ):
        assert (await client.get("/health/ready")).status_code == 200
        is_draining = True
        assert (await client.get("/health/ready")).text == "draining: takes no more jobs\n"
        is_draining, error = False, "gone"
        answer = await client.get("/health/ready")
        assert (answer.status_code, answer.text) == (503, "database: gone\n")


async def test_port_in_use_is_named_in_the_error() -> None:
    """Two workers of one machine that were given the same port."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        loaded = settings.load(environ={"ADJUDGE_METRICS_PORT": str(port)})
        with pytest.raises(InvalidInput, match=rf"server.metrics_port: cannot listen on 127.0.0.1:{port}"):
            async with open_health_server(loaded, _no_metrics, {}):
                pass


async def test_loop_waiting_for_the_database_is_live_until_its_timeouts() -> None:
    """Restarting the process would not help; a loop that is silent for longer than its waits can last is dead."""
    now, port = 0.0, free_port()
    loaded = settings.load(
        environ={
            "ADJUDGE_METRICS_PORT": str(port),
            "ADJUDGE_DATABASE_TIMEOUT_SEC": "45",
            "ADJUDGE_REDIS_TIMEOUT_SEC": "15",
        }
    )
    heartbeat = LoopHeartbeat("reader", clock=lambda: now)
    async with open_health_server(loaded, _no_metrics, {}, heartbeat), httpx.AsyncClient() as client:

        async def status(at: float) -> int:
            nonlocal now
            now = at
            return (await client.get(f"http://127.0.0.1:{port}/health/live")).status_code

        assert [await status(at) for at in (31.0, 89.0, 91.0)] == [200, 200, 503]


def test_unusable_cache_folder_is_reported(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(InvalidInput, match=r"cache_dir: .*file/cache cannot be created: Not a directory"):
        BlobCache(DirectoryBlobStore(tmp_path), tmp_path / "file" / "cache", max_bytes=1)


async def test_worker_registers_usable_languages_only(tmp_path: Path) -> None:
    """Admission refuses what no worker announces: a submission in one that is not installed would end in an SE."""
    here = Language("shell", "Shell", "shell", ("sh",), "main.sh", tools=("sh",), run=("sh", "{main}"))
    gone = Language("lost", "Lost", "lost", ("lost",), "main.lost", tools=("no-such-tool",), run=("no-such-tool",))
    judge = Judge(Sandbox(), Languages([here, gone]), CompileCache(tmp_path, 1))
    before = _info("w-1", 2)
    after = await _with_capabilities(judge, before)
    assert (before.health, after.health) == (ProcessHealth.STARTING, ProcessHealth.READY)
    assert after.languages == {"shell": "unknown"}


async def test_worker_registers_its_isolation(tmp_path: Path) -> None:
    async with Sandbox(slots=1, state_dir=tmp_path / "state", unsafe=True) as box:
        judge = Judge(box, Languages([]), CompileCache(tmp_path / "compiled", 1))
        found = (await _with_capabilities(judge, _info("w-1", 1))).isolation
        assert _health(worker(draining=False), judge) is ProcessHealth.READY
    assert re.fullmatch(r"(root|user namespace), (cgroup1|cgroup2|rlimit)", found)


def test_worker_without_agents_is_degraded(tmp_path: Path) -> None:
    judge = Judge(Sandbox(), Languages([]), CompileCache(tmp_path, 1))
    assert _health(worker(draining=False), judge) is ProcessHealth.DEGRADED
    assert _health(worker(draining=True), judge) is ProcessHealth.DRAINING


def worker(*, draining: bool) -> Worker:
    return cast("Worker", SimpleNamespace(is_draining=draining, is_paused=False))
