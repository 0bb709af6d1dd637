"""Admission: decides whether a submission is accepted now, and with which priority.

Checks, the cheapest first: is there a worker for the language and space in the queue (the load snapshot, no round
trip); is this user or address within its rate (token buckets, one round trip if they are shared); is this user within
the in-flight limit and the daily quota (rows, read at most once a second for each user). A limit of 0 is not checked.
"""

from __future__ import annotations

import asyncio
import hashlib
import ipaddress
import time
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from math import ceil
from typing import Final

from cachetools import LRUCache

from adjudge.cache.token_buckets import BucketRequest, TokenBuckets
from adjudge.domain.errors import (
    AdjudgeError,
    InFlightCap,
    InvalidInput,
    JudgingPaused,
    NoWorkerForLanguage,
    QueueFull,
    QuotaExhausted,
    RateLimited,
)
from adjudge.domain.ids import uuid7
from adjudge.domain.permissions import Permission, Role
from adjudge.observe import metrics
from adjudge.observe.logs import get_logger
from adjudge.registry.driver import ProcessHealth, ProcessInfo, ProcessRole, Registry
from adjudge.services.viewer import Viewer
from adjudge.settings.sections import AdmissionSettings as Limits
from adjudge.store import Database, Tx
from adjudge.store.judging import admission
from adjudge.store.judging.admission import UserUsage
from adjudge.store.ops import judging_pauses

ADMIN_BAND, STAFF_BAND, CONTESTANT_BAND, PRACTICE_BAND = range(4)
_DAY_SEC: Final = 86_400
_USAGE_TTL_SEC: Final = 1.0
_MAX_USAGE_ENTRIES: Final = 10_000
_LOG_SEC: Final = 1.0
_SNAPSHOT_SEC: Final = 1.0

log = get_logger(__name__)


@dataclass(frozen=True, slots=True)
class LoadSnapshot:
    """The load that admission decides by: queue length and available languages, at most one second old."""

    waiting: int = 0
    languages: frozenset[str] | None = None
    """The languages that available workers can run; None if unknown."""
    workers: int = 0
    pauses: frozenset[tuple[str, str]] = frozenset()
    """Pauses of judging by operators: scope and subject."""


def is_judging_paused(pauses: Collection[tuple[str, str]], language: str, problem_id: str = "") -> bool:
    """Whether a pause concerns a program in ``language``, or a submission to the problem."""
    return bool(pauses) and any(key in pauses for key in (("all", ""), ("language", language), ("problem", problem_id)))


class LoadSampler:
    """Reads snapshots, once for all requests.

    A snapshot older than half a second is refreshed in the background; only the first request after an idle period
    waits for one.
    """

    def __init__(
        self,
        database: Database,
        registry: Registry,
        *,
        count_to: int,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._database = database
        self._registry = registry
        self._count_to = count_to
        self._clock = clock
        self._sample = LoadSnapshot()
        self._taken_at = float("-inf")
        self._taking: asyncio.Task[None] | None = None

    async def current(self) -> LoadSnapshot:
        age_sec = self._clock() - self._taken_at
        if age_sec > _SNAPSHOT_SEC / 2 and self._taking is None:
            self._taking = asyncio.create_task(self._refresh())
            self._taking.add_done_callback(self._on_refreshed)
        if age_sec > _SNAPSHOT_SEC and self._taking is not None:
            await asyncio.shield(self._taking)
        return self._sample

    async def close(self) -> None:
        if self._taking is not None:
            self._taking.cancel()
            await asyncio.wait([self._taking])

    async def _refresh(self) -> None:
        """Refresh the snapshot. On errors the queue length keeps its last value and the languages are unknown."""
        sample = self._sample
        try:
            sample = await self._database.read(partial(self._read_rows, sample))
        except AdjudgeError as error:
            log.warning("queue_depth_unknown", error=error.message)
        try:
            alive = [
                process.info
                for process in await self._registry.list()
                if process.info.role is ProcessRole.WORKER and process.info.health is not ProcessHealth.DRAINING
            ]
            sample = replace(sample, languages=_languages(alive), workers=len(alive))
        except AdjudgeError as error:
            log.warning("worker_health_unknown", error=error.message)
            sample = replace(sample, languages=None)
        self._sample, self._taken_at = sample, self._clock()

    async def _read_rows(self, sample: LoadSnapshot, tx: Tx) -> LoadSnapshot:
        pauses = frozenset((pause.scope, pause.subject) for pause in await judging_pauses.list_all(tx))
        return replace(sample, waiting=await admission.count_waiting(tx, limit=self._count_to), pauses=pauses)

    def _on_refreshed(self, task: asyncio.Task[None]) -> None:
        self._taking = None
        if not task.cancelled() and task.exception() is not None:
            log.error("load_sampling_failed", exc_info=task.exception())


@dataclass(frozen=True, slots=True)
class AdmissionDecision:
    """An accepted request: its priority, and how long the delivery of its jobs is delayed."""

    band: int
    delay_ms: int = 0
    """Above 0 only if the queue is full and the settings accept work for later; sent as ``Retry-After``."""

    pauses: frozenset[tuple[str, str]] = frozenset()
    """The pauses of judging, for ``is_judging_paused``."""

    @property
    def retry_after_sec(self) -> int:
        """When to ask for the result; 0 if the job is not delayed."""
        return ceil(self.delay_ms / 1_000)


@dataclass(slots=True)
class _UsageCount:
    """A user's usage as last counted, plus what this process has accepted since."""

    day: int
    in_flight: int
    today: int
    at_sec: float


class _Decisions:
    """Logs decisions: the first of each kind per second, with the number of those left out."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._logged: dict[tuple[str, str], tuple[float, int]] = {}

    def log(self, decision: str, reason: str, **fields: object) -> None:
        """Log one decision, unless one of its kind was logged within the last second."""
        now_sec = self._clock()
        last_sec, left_out = self._logged.get((decision, reason), (float("-inf"), 0))
        if now_sec - last_sec < _LOG_SEC:
            self._logged[decision, reason] = (last_sec, left_out + 1)
            return
        self._logged[decision, reason] = (now_sec, 0)
        log.info("admission_decided", decision=decision, reason=reason, left_out=left_out, **fields)


class AdmissionController:
    """Decides for one process; limits that hold across processes are read from Redis and the database."""

    def __init__(
        self,
        limits: Limits,
        database: Database,
        buckets: TokenBuckets,
        sampler: LoadSampler,
        *,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._limits = limits
        self._database = database
        self._buckets = buckets
        self._sampler = sampler
        self._clock = clock
        self._uses: LRUCache[str, _UsageCount] = LRUCache(_MAX_USAGE_ENTRIES)
        self._closed = False
        self._decisions = _Decisions(clock)

    async def admit(
        self,
        viewer: Viewer,
        *,
        address: str,
        count: int,
        languages: Collection[str],
        problem_ids: Sequence[str] | None = None,
    ) -> AdmissionDecision:
        """Accept ``count`` jobs of ``viewer``, or raise an error with the reason and the time to retry.

        Submissions name their problems. They are accepted while judging is paused, because they can wait; other
        programs are refused.
        """
        band = priority_for_role(viewer.role)
        try:
            pauses = (await self._sampler.current()).pauses
            if problem_ids is None:
                self._check_pauses(pauses, languages)
            delay_ms = await self._check_system_load(band, languages)
            if not viewer.can(Permission.SUBMISSION_UNLIMITED):
                await self._check_rate(viewer.id, address, count, problem_ids or ())
                await self._check_quota(viewer.id, count)
        except AdjudgeError as refused:
            self._refuse(refused, viewer, count)
            raise
        decision, reason = ("later", "queue_full") if delay_ms else ("admitted", "ok")
        metrics.ADMISSION.labels(decision, reason).inc(count)
        self._decisions.log(decision, reason, user_id=viewer.user_id, count=count, band=band, delay_ms=delay_ms)
        return AdmissionDecision(band, delay_ms, pauses)

    async def check_capacity(self, viewer: Viewer) -> None:
        """Accept work that creates further jobs (an import, a chain run, a rejudge batch), or raise ``QueueFull``.

        Only the queue length is checked, because such requests are rare. If the settings accept work for later, they
        are always accepted and wait in the queue.
        """
        sample = await self._sampler.current()
        band, is_later = priority_for_role(viewer.role), self._limits.overload == "accept_later"
        if band != ADMIN_BAND and not is_later and self._is_overloaded(sample.waiting):
            refused = QueueFull(waiting=sample.waiting, retry_after_sec=self._limits.later_sec)
            self._refuse(refused, viewer, 1)
            raise refused
        metrics.ADMISSION.labels("admitted", "ok").inc()
        self._decisions.log("admitted", "ok", user_id=viewer.user_id, count=1, band=band)

    def _refuse(self, refused: AdjudgeError, viewer: Viewer, count: int) -> None:
        metrics.ADMISSION.labels("refused", refused.code.lower()).inc(count)
        self._decisions.log("refused", refused.code.lower(), user_id=viewer.user_id, count=count)

    async def unavailable_languages(self, languages: Collection[str]) -> frozenset[str]:
        """The ``languages`` that are rejected now because no worker can run them."""
        sample = await self._sampler.current() if self._limits.health_gate else LoadSnapshot()
        return _without_worker(sample, languages)

    async def close(self) -> None:
        await self._sampler.close()

    def _check_pauses(self, pauses: frozenset[tuple[str, str]], languages: Collection[str]) -> None:
        paused = sorted(language for language in languages if is_judging_paused(pauses, language))
        if paused:
            raise JudgingPaused(
                f"An operator has paused judging of {', '.join(paused)}. Retry later.",
                languages=",".join(paused),
                retry_after_sec=self._limits.later_sec,
            )

    async def _check_system_load(self, band: int, languages: Collection[str]) -> int:
        sample = await self._sampler.current()
        missing = sorted(_without_worker(sample, languages))
        if missing and self._limits.health_gate:
            raise NoWorkerForLanguage(
                f"No online worker supports {', '.join(missing)} (workers online: "
                f"{sample.workers}). Retry later or contact an operator.",
                languages=",".join(missing),
                retry_after_sec=self._limits.later_sec,
            )
        if band == ADMIN_BAND or not self._is_overloaded(sample.waiting):
            return 0
        if self._limits.overload == "accept_later":
            return self._limits.later_sec * 1_000
        raise QueueFull(waiting=sample.waiting, retry_after_sec=self._limits.later_sec)

    def _is_overloaded(self, waiting: int) -> bool:
        """Whether the queue is full: from the high watermark until the low one, so that it does not alternate."""
        if not self._limits.high_watermark:
            return False
        mark = self._limits.low_watermark if self._closed else self._limits.high_watermark
        was_closed, self._closed = self._closed, waiting > mark or (not self._closed and waiting == mark)
        if was_closed != self._closed:
            log.warning("admission_gate_changed", state="closed" if self._closed else "open", waiting=waiting)
        return self._closed

    async def _check_rate(self, user_id: str, address: str, count: int, problem_ids: Sequence[str]) -> None:
        limits, wants = self._limits, []
        if limits.user_per_sec:
            wants.append(_bucket_request(f"submit:user:{user_id}", limits.user_per_sec, limits.user_burst, count))
        if limits.address_per_sec:
            wants.append(_bucket_request(_address_key(address), limits.address_per_sec, limits.address_burst, count))
        if limits.problem_per_sec:
            wants += [
                _bucket_request(f"submit:problem:{problem_id}", limits.problem_per_sec, limits.problem_burst, wanted)
                for problem_id, wanted in Counter(problem_ids).items()
            ]
        wait_sec = max(await self._buckets.take_many(wants), default=0.0) if wants else 0.0
        if wait_sec > 0:
            raise RateLimited(retry_after_sec=ceil(wait_sec))

    async def _check_quota(self, user_id: str, count: int) -> None:
        """Check usage by counting rows; a count that would reject the request is refreshed first."""
        limits = self._limits
        if not (limits.in_flight or limits.daily_quota):
            return
        now_sec = self._clock()
        counted = self._uses.get(user_id)
        if counted is None or counted.day != _day(now_sec) or now_sec - counted.at_sec > _USAGE_TTL_SEC:
            counted = await self._count(user_id, now_sec)
        if self._exceeds_quota(counted, count):
            counted = await self._count(user_id, now_sec)
        if limits.in_flight and counted.in_flight + count > limits.in_flight:
            raise InFlightCap(in_flight=counted.in_flight, limit=limits.in_flight, retry_after_sec=1)
        if limits.daily_quota and counted.today + count > limits.daily_quota:
            left_sec = ceil((_day(now_sec) + 1) * _DAY_SEC - now_sec)
            raise QuotaExhausted(used=counted.today, limit=limits.daily_quota, retry_after_sec=max(1, left_sec))
        counted.in_flight += count
        counted.today += count

    def _exceeds_quota(self, counted: _UsageCount, count: int) -> bool:
        limits = self._limits
        return bool(
            (limits.in_flight and counted.in_flight + count > limits.in_flight)
            or (limits.daily_quota and counted.today + count > limits.daily_quota)
        )

    async def _count(self, user_id: str, now_sec: float) -> _UsageCount:
        day = _day(now_sec)

        async def read(tx: Tx) -> UserUsage:
            return await admission.count_usage(
                tx,
                user_id,
                since_id=uuid7(day * _DAY_SEC * 1_000, 0),
                open_limit=self._limits.in_flight,
                since_limit=self._limits.daily_quota,
            )

        use = await self._database.read(read)
        counted = self._uses[user_id] = _UsageCount(day, use.in_flight, use.submitted_today, now_sec)
        return counted


def priority_for_role(role: Role | None) -> int:
    """The priority band of a role: admins, staff, contestants, then services."""
    if role is Role.ADMIN:
        return ADMIN_BAND
    if role in (Role.SETTER, Role.JUDGE):
        return STAFF_BAND
    return CONTESTANT_BAND if role is Role.CONTESTANT else PRACTICE_BAND


def client_network(address: str) -> str:
    """The network that counts as one client: an IPv4 address, or a /64 of IPv6, which one household usually has."""
    try:
        known = ipaddress.ip_address(address)
    except ValueError:
        return "unknown"
    if known.version == 6:
        return str(ipaddress.ip_network((known, 64), strict=False))
    return str(known)


def hashed_bucket_key(private: str) -> str:
    """A hashed key, so that Redis does not store addresses and names."""
    return hashlib.sha256(private.encode(errors="surrogatepass")).hexdigest()[:24]


@lru_cache(_MAX_USAGE_ENTRIES)
def _address_key(address: str) -> str:
    return f"submit:address:{hashed_bucket_key(client_network(address))}"


def _bucket_request(key: str, rate_per_sec: float, burst: int, count: int) -> BucketRequest:
    if count > burst:
        raise InvalidInput(f"Batch too large: {count} submissions, at most {burst} allowed at once.", limit=burst)
    return BucketRequest(key, rate_per_sec, burst, count)


def _day(now_sec: float) -> int:
    return int(now_sec // _DAY_SEC)


def _without_worker(sample: LoadSnapshot, languages: Collection[str]) -> frozenset[str]:
    return frozenset() if sample.languages is None else frozenset(languages) - sample.languages


def _languages(alive: Sequence[ProcessInfo]) -> frozenset[str] | None:
    """All languages of the workers; None while a worker is starting, because its languages are unknown."""
    if any(info.health is ProcessHealth.STARTING for info in alive):
        return None
    return frozenset(language for info in alive for language in info.languages)
