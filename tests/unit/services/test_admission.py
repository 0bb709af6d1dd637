"""Who is let in, who is turned away, and why."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass, replace

import pytest

from adjudge.cache.token_buckets import MemoryTokenBuckets, RedisTokenBuckets, TokenBuckets
from adjudge.domain.errors import (
    AdjudgeError,
    InFlightCap,
    InvalidInput,
    NoWorkerForLanguage,
    QueueFull,
    QuotaExhausted,
    RateLimited,
    Unavailable,
)
from adjudge.domain.ids import new_id
from adjudge.domain.permissions import ROLE_PERMISSIONS, Role
from adjudge.registry import ProcessHealth, ProcessInfo
from adjudge.registry.database import DatabaseRegistry
from adjudge.services.admission import AdmissionController, LoadSampler, client_network, priority_for_role
from adjudge.services.rate_limit import FallbackBuckets
from adjudge.services.viewer import AuthMethod, Viewer
from adjudge.settings.sections import AdmissionSettings as Limits
from adjudge.store.accounts import users
from adjudge.store.judging import executions
from adjudge.store.judging.execution_models import NewExecution
from tests.support.servers import RedisServer
from tests.support.store_harness import StoreHarness, metric_value

OPEN = Limits(user_per_sec=0, address_per_sec=0, daily_quota=0, in_flight=0, high_watermark=0, health_gate=False)


def viewer(role: Role = Role.CONTESTANT, user_id: str | None = None) -> Viewer:
    return Viewer(user_id or new_id(), "somebody", role, ROLE_PERMISSIONS[role], AuthMethod.TOKEN)


@dataclass
class AdmissionFixture:
    """A store with gates before it, and a clock that only the test moves."""

    store: StoreHarness
    registry: DatabaseRegistry
    now: float = 1_700_000_000.0

    def gate(self, limits: Limits, buckets: TokenBuckets | None = None) -> AdmissionController:
        sampler = LoadSampler(self.store.database, self.registry, count_to=1_000, clock=lambda: self.now)
        mine = buckets or MemoryTokenBuckets(clock_us=lambda: int(self.now * 1_000_000))
        return AdmissionController(limits, self.store.database, mine, sampler, clock=lambda: self.now)

    async def wait(self, jobs: int) -> None:
        """Let jobs wait, and the sample grow old."""
        await self.store.enqueue_many(jobs)
        self.now += 2

    async def work(self, jobs: int) -> None:
        """Let jobs be claimed, and the sample grow old."""
        rows = await self.store.rows("SELECT id FROM jobs WHERE status = 'pending' ORDER BY id LIMIT :n", n=jobs)
        await self.store.claim(*[row["id"] for row in rows])
        self.now += 2


@pytest.fixture
async def admission(store: StoreHarness) -> AsyncIterator[AdmissionFixture]:
    registry = DatabaseRegistry(store.database, lease_sec=15)
    yield AdmissionFixture(store, registry)
    await registry.close()


async def admit(
    gate: AdmissionController, who: Viewer, count: int = 1, address: str = "192.0.2.1", language: str = "cpp"
) -> int:
    return (await gate.admit(who, address=address, count=count, languages=[language])).band


async def refusal(gate: AdmissionController, who: Viewer, count: int = 1, address: str = "192.0.2.1") -> AdjudgeError:
    with pytest.raises(AdjudgeError) as refused:
        await admit(gate, who, count, address)
    return refused.value


async def test_backpressure_activates_on_high_depth(admission: AdmissionFixture) -> None:
    """Closed at the high watermark, open again at the low one, with every decision counted (OJ-spec, section 7)."""
    gate = admission.gate(replace(OPEN, high_watermark=5, low_watermark=2, later_sec=7))
    refused_before = metric_value("admission_total", decision="refused", reason="queue_full")
    await admission.wait(4)
    await admit(gate, viewer())
    await admission.wait(1)
    error = await refusal(gate, viewer())
    assert isinstance(error, QueueFull)
    assert (error.http_status, error.fields) == (429, {"waiting": 5, "retry_after_sec": 7})
    assert await admit(gate, viewer(Role.ADMIN)) == 0
    await admission.work(2)
    assert isinstance(await refusal(gate, viewer()), QueueFull), "between the marks it stays closed"
    await admission.work(1)
    await admit(gate, viewer())
    await admission.wait(2)
    await admit(gate, viewer())
    assert metric_value("admission_total", decision="refused", reason="queue_full") == refused_before + 2


async def test_rate_of_a_problem_holds_over_all_users(admission: AdmissionFixture) -> None:
    gate = admission.gate(replace(OPEN, problem_per_sec=0.001, problem_burst=2))

    async def submit(problem_id: str) -> None:
        await gate.admit(viewer(), address="", count=1, languages=[], problem_ids=[problem_id])

    await submit("p1")
    await submit("p1")
    with pytest.raises(RateLimited):
        await submit("p1")
    await submit("p2")
    await gate.admit(viewer(Role.ADMIN), address="", count=1, languages=[], problem_ids=["p1"])


async def test_overload_can_be_taken_for_later(admission: AdmissionFixture) -> None:
    gate = admission.gate(replace(OPEN, high_watermark=1, low_watermark=0, overload="accept_later", later_sec=9))
    await admission.wait(1)
    admitted = await gate.admit(viewer(), address="", count=1, languages=[])
    assert (admitted.band, admitted.delay_ms, admitted.retry_after_sec) == (2, 9_000, 9)


async def test_the_depth_is_not_read_for_every_request(admission: AdmissionFixture) -> None:
    gate = admission.gate(replace(OPEN, high_watermark=1, low_watermark=0))
    await admit(gate, viewer())
    await admission.store.enqueue_many(1)
    await admit(gate, viewer())
    admission.now += 2
    assert isinstance(await refusal(gate, viewer()), QueueFull)


async def test_a_language_that_nobody_can_run_is_refused_at_once(admission: AdmissionFixture) -> None:
    gate = admission.gate(replace(OPEN, health_gate=True))
    error = await refusal(gate, viewer(Role.ADMIN))
    assert isinstance(error, NoWorkerForLanguage)
    assert error.fields["languages"] == "cpp"
    for name, language, health in (("a", "cpp", ProcessHealth.DRAINING), ("b", "go", ProcessHealth.READY)):
        await admission.registry.register(ProcessInfo(name, "host", 1, "1", 1, {language: "1"}, health=health))
    admission.now += 2
    assert isinstance(await refusal(gate, viewer()), NoWorkerForLanguage), "a worker that drains takes nothing new"
    await admit(gate, viewer(), language="go")


async def test_a_worker_that_starts_may_be_one_that_can(admission: AdmissionFixture) -> None:
    """It takes jobs while it still looks for its languages: after a restart nobody is turned away for it."""
    gate = admission.gate(replace(OPEN, health_gate=True))
    starting = ProcessInfo("a", "host", 1, "1", 1, health=ProcessHealth.STARTING)
    await admission.registry.register(starting)
    await admit(gate, viewer())
    assert await gate.unavailable_languages(["cpp"]) == frozenset()
    await admission.registry.register(replace(starting, languages={"go": "1"}, health=ProcessHealth.READY))
    admission.now += 2
    assert isinstance(await refusal(gate, viewer()), NoWorkerForLanguage)
    assert await gate.unavailable_languages(["cpp", "go"]) == {"cpp"}


async def test_the_gate_stays_open_while_nobody_can_tell_who_is_alive(admission: AdmissionFixture) -> None:
    class Away(DatabaseRegistry):
        async def list(self) -> list[object]:  # type: ignore[override]  # it never returns
            raise Unavailable

    admission.registry = Away(admission.store.database)
    await admit(admission.gate(replace(OPEN, health_gate=True)), viewer())


async def test_one_user_is_kept_to_a_rate_and_a_burst(admission: AdmissionFixture) -> None:
    gate, who = admission.gate(replace(OPEN, user_per_sec=0.5, user_burst=3)), viewer()
    await admit(gate, who, count=3)
    error = await refusal(gate, who)
    assert isinstance(error, RateLimited)
    assert error.fields == {"retry_after_sec": 2}
    await admit(gate, viewer(), count=3)
    admission.now += 2
    await admit(gate, who)
    assert isinstance(await refusal(gate, who, count=4), InvalidInput), "what can never be had is not put off"


async def test_rate_limit_of_an_address_holds_for_all_users(admission: AdmissionFixture) -> None:
    gate = admission.gate(replace(OPEN, address_per_sec=1, address_burst=1))
    await admit(gate, viewer(), address="2001:db8::1")
    assert isinstance(await refusal(gate, viewer(), address="2001:db8::2"), RateLimited)
    await admit(gate, viewer(), address="2001:db8:0:1::1")


async def test_what_is_in_flight_is_counted_over_rows(admission: AdmissionFixture) -> None:
    (one, _two) = await admission.store.submit(2)
    owner = (await admission.store.row("SELECT user_id FROM submissions WHERE id = :id", id=one.submission_id))[
        "user_id"
    ]
    gate = admission.gate(replace(OPEN, in_flight=3))
    await admit(gate, viewer(user_id=owner))
    assert isinstance(await refusal(gate, viewer(user_id=owner), count=2), InFlightCap)
    await admission.store.transact(
        lambda tx: admission.store.submissions.cancel(tx, one.submission_id, actor="test", reason="no longer wanted")
    )
    await admit(gate, viewer(user_id=owner), count=2)
    await admit(gate, viewer(Role.SERVICE, owner), count=100)


async def test_a_day_has_its_quota(admission: AdmissionFixture) -> None:
    (made,) = await admission.store.submit()
    owner = (await admission.store.row("SELECT user_id FROM submissions WHERE id = :id", id=made.submission_id))[
        "user_id"
    ]
    gate = admission.gate(replace(OPEN, daily_quota=2))
    admission.now = int(made.submission_id.replace("-", "")[:12], 16) / 1_000
    await admit(gate, viewer(user_id=owner))
    error = await refusal(gate, viewer(user_id=owner), count=2)
    assert isinstance(error, QuotaExhausted)
    assert 0 < int(str(error.fields["retry_after_sec"])) <= 86_400
    admission.now += 86_400
    await admit(gate, viewer(user_id=owner), count=2)


async def test_limits_are_shared_by_two_servers_over_one_redis(
    sqlite_store: StoreHarness, redis_server: RedisServer
) -> None:
    admission = AdmissionFixture(sqlite_store, DatabaseRegistry(sqlite_store.database))
    limits = replace(OPEN, user_per_sec=0.001, user_burst=2)
    shared = [RedisTokenBuckets(redis_server.url, environment=f"gates-{new_id()[-6:]}")]
    shared.append(RedisTokenBuckets(redis_server.url, environment=shared[0]._prefix.split(":")[1]))
    first, second = (admission.gate(limits, FallbackBuckets(buckets)) for buckets in shared)
    who = viewer()
    await admit(first, who)
    await admit(second, who)
    assert isinstance(await refusal(first, who), RateLimited)
    assert isinstance(await refusal(second, who), RateLimited)
    for buckets in shared:
        await buckets.close()


async def test_without_redis_each_server_limits_by_itself(sqlite_store: StoreHarness) -> None:
    admission = AdmissionFixture(sqlite_store, DatabaseRegistry(sqlite_store.database))
    away = RedisTokenBuckets("redis://127.0.0.1:1/0", environment="away")
    gate, who = admission.gate(replace(OPEN, user_per_sec=0.001, user_burst=1), FallbackBuckets(away)), viewer()
    await admit(gate, who)
    assert isinstance(await refusal(gate, who), RateLimited)
    await away.close()


def test_bands_follow_roles() -> None:
    assert [
        priority_for_role(role) for role in (Role.ADMIN, Role.JUDGE, Role.SETTER, Role.CONTESTANT, Role.SERVICE)
    ] == [*(0, 1, 1, 2, 3)]


@pytest.mark.parametrize(
    ("address", "counted_as"),
    [("192.0.2.7", "192.0.2.7"), ("2001:db8::7", "2001:db8::/64"), ("", "unknown"), ("testclient", "unknown")],
)
def test_what_counts_as_one_address(address: str, counted_as: str) -> None:
    assert client_network(address) == counted_as


async def test_executions_count_like_submissions(admission: AdmissionFixture) -> None:
    user = new_id()
    await admission.store.transact(lambda tx: users.insert(tx, users.NewUser(user, "runner")))
    requests = [NewExecution(new_id(), user, "cpp", "source", ("",), {"cpu_ms": 1}, ttl_ms=1) for _ in range(2)]
    await admission.store.transact(lambda tx: executions.create(tx, admission.store.jobs, requests, new_id=new_id))
    admission.now = int(requests[0].id.replace("-", "")[:12], 16) / 1_000
    assert isinstance(await refusal(admission.gate(replace(OPEN, in_flight=2)), viewer(user_id=user)), InFlightCap)
    assert isinstance(await refusal(admission.gate(replace(OPEN, daily_quota=2)), viewer(user_id=user)), QuotaExhausted)
