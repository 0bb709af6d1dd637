"""Admission: decides whether a submission is accepted now, and with which priority.

Checks, the cheapest first: is there a worker for the language and space in the queue (the load snapshot, no round
trip); is this user or address within its rate (token buckets, one round trip if they are shared); is this user within
the in-flight limit and the daily quota (rows, read at most once a second for each user). A limit of 0 is not checked.
"""

from __future__ import annotations

import hashlib
import ipaddress
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass
from math import ceil
from typing import Final

from cachetools import LRUCache

from adjudge.cache.token_buckets import BucketRequest, TokenBuckets
from adjudge.domain.errors import (
    AdjudgeError,
    InFlightCap,
    InvalidInput,
    NoWorkerForLanguage,
    QueueFull,
    QuotaExhausted,
    RateLimited,
)
from adjudge.domain.ids import uuid7
from adjudge.domain.permissions import Permission, Role
from adjudge.observe import metrics
from adjudge.observe.logs import get_logger
from adjudge.services.load_snapshot import LoadSampler, LoadSnapshot
from adjudge.services.viewer import Viewer
from adjudge.settings.sections import AdmissionSettings as Limits
from adjudge.store import Database, Tx
from adjudge.store.judging import admission
from adjudge.store.judging.admission import UserUsage

ADMIN_BAND, STAFF_BAND, CONTESTANT_BAND, PRACTICE_BAND = range(4)
_DAY_SEC: Final = 86_400
_USE_LIFE_SEC: Final = 1.0
_USES_KEPT: Final = 10_000
_LOG_SEC: Final = 1.0

log = get_logger(__name__)


@dataclass(frozen=True, slots=True)
class AdmissionDecision:
    """Let in: with which priority, and how much later than now the job may be delivered."""

    band: int
    delay_ms: int = 0
    """Above 0 only where overload is met by accepting for later: say so with ``Retry-After``."""

    @property
    def retry_after_sec(self) -> int:
        """When it makes sense to look; 0 where it is judged in its turn."""
        return ceil(self.delay_ms / 1_000)


@dataclass(slots=True)
class _UsageCount:
    """A user's rows as last counted, with what this process has let in since."""

    day: int
    in_flight: int
    today: int
    at_sec: float


class _Decisions:
    """Logs decisions: of each kind the first one in a second, with the number of those that were left out."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._logged: dict[tuple[str, str], tuple[float, int]] = {}

    def log(self, decision: str, reason: str, **fields: object) -> None:
        """Log one decision, unless one of its kind was logged a moment ago."""
        now_sec = self._clock()
        last_sec, left_out = self._logged.get((decision, reason), (float("-inf"), 0))
        if now_sec - last_sec < _LOG_SEC:
            self._logged[decision, reason] = (last_sec, left_out + 1)
            return
        self._logged[decision, reason] = (now_sec, 0)
        log.info("admission_decided", decision=decision, reason=reason, left_out=left_out, **fields)


class AdmissionController:
    """Decides for one process; what must hold across processes it reads from Redis and the database."""

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
        self._uses: LRUCache[str, _UsageCount] = LRUCache(_USES_KEPT)
        self._closed = False
        self._decisions = _Decisions(clock)

    async def admit(self, viewer: Viewer, *, address: str, count: int, languages: Collection[str]) -> AdmissionDecision:
        """Let ``count`` jobs of ``viewer`` in, or say why not and when to come back."""
        band = priority_for_role(viewer.role)
        try:
            delay_ms = await self._check_system_load(band, languages)
            if not viewer.can(Permission.SUBMISSION_UNLIMITED):
                await self._check_rate(viewer.id, address, count)
                await self._check_quota(viewer.id, count)
        except AdjudgeError as refused:
            self._refuse(refused, viewer, count)
            raise
        decision, reason = ("later", "queue_full") if delay_ms else ("admitted", "ok")
        metrics.ADMISSION.labels(decision, reason).inc(count)
        self._decisions.log(decision, reason, user_id=viewer.user_id, count=count, band=band, delay_ms=delay_ms)
        return AdmissionDecision(band, delay_ms)

    async def check_room(self, viewer: Viewer) -> None:
        """Let in work that brings further jobs with it (an import, a run of a chain, a rejudge), or say why not.

        Only the depth of the queue counts: these are few, and nobody can send them as fast as submissions. Where
        overload is met by accepting for later they are let in, and wait behind what is there.
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
        metrics.ADMISSION.labels("refused", refused.code.lower()).inc()
        self._decisions.log("refused", refused.code.lower(), user_id=viewer.user_id, count=count)

    async def unavailable_languages(self, languages: Collection[str]) -> frozenset[str]:
        """Those of ``languages`` that would be refused at this moment, since no worker can run them."""
        sample = await self._sampler.current() if self._limits.health_gate else LoadSnapshot()
        return _lacking(sample, languages)

    async def close(self) -> None:
        """Stop sampling."""
        await self._sampler.close()

    async def _check_system_load(self, band: int, languages: Collection[str]) -> int:
        sample = await self._sampler.current()
        missing = sorted(_lacking(sample, languages))
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
        """Close at the high watermark, open at the low one: a gate at one mark alone would flutter."""
        if not self._limits.high_watermark:
            return False
        mark = self._limits.low_watermark if self._closed else self._limits.high_watermark
        was_closed, self._closed = self._closed, waiting > mark or (not self._closed and waiting == mark)
        if was_closed != self._closed:
            log.warning("admission_gate_changed", state="closed" if self._closed else "open", waiting=waiting)
        return self._closed

    async def _check_rate(self, user_id: str, address: str, count: int) -> None:
        limits, wants = self._limits, []
        if limits.user_per_sec:
            wants.append(_want(f"submit:user:{user_id}", limits.user_per_sec, limits.user_burst, count))
        if limits.address_per_sec:
            key = f"submit:address:{hashed_bucket_key(client_network(address))}"
            wants.append(_want(key, limits.address_per_sec, limits.address_burst, count))
        wait_sec = max(await self._buckets.take_many(wants), default=0.0) if wants else 0.0
        if wait_sec > 0:
            raise RateLimited(retry_after_sec=ceil(wait_sec))

    async def _check_quota(self, user_id: str, count: int) -> None:
        """Count over rows; a count that would refuse is taken anew before it does."""
        limits = self._limits
        if not (limits.in_flight or limits.daily_quota):
            return
        now_sec = self._clock()
        counted = self._uses.get(user_id)
        if counted is None or counted.day != _day(now_sec) or now_sec - counted.at_sec > _USE_LIFE_SEC:
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
    """Admins before staff, staff before contestants, contestants before practice, which is what programs do."""
    if role is Role.ADMIN:
        return ADMIN_BAND
    if role in (Role.SETTER, Role.JUDGE):
        return STAFF_BAND
    return CONTESTANT_BAND if role is Role.CONTESTANT else PRACTICE_BAND


def client_network(address: str) -> str:
    """What counts as one address: IPv6 hands whole networks to one household."""
    try:
        known = ipaddress.ip_address(address)
    except ValueError:
        return "unknown"
    if known.version == 6:
        return str(ipaddress.ip_network((known, 64), strict=False))
    return str(known)


def hashed_bucket_key(private: str) -> str:
    """What Redis may know of an address or a name: enough to tell it from others, and no more."""
    return hashlib.sha256(private.encode(errors="surrogatepass")).hexdigest()[:24]


def _want(key: str, rate_per_sec: float, burst: int, count: int) -> BucketRequest:
    if count > burst:
        raise InvalidInput(f"Batch too large: {count} submissions, at most {burst} allowed at once.", limit=burst)
    return BucketRequest(key, rate_per_sec, burst, count)


def _day(now_sec: float) -> int:
    return int(now_sec // _DAY_SEC)


def _lacking(sample: LoadSnapshot, languages: Collection[str]) -> frozenset[str]:
    return frozenset() if sample.languages is None else frozenset(languages) - sample.languages
