"""Operations pages: status, dead letters, job history."""

from __future__ import annotations

from adjudge.registry import ProcessInfo, ProcessRole
from adjudge.store.jobs.models import PoisonJob
from adjudge.store.ops import metric_samples
from adjudge.store.ops.metric_samples import MetricSampleRow
from adjudge.web import time_series
from tests.support.asgi_app import AsgiApp
from tests.support.published_problem import publish_problem

HOSTILE = "<script>alert(1)</script>"


async def _dead_letter(pages: AsgiApp) -> str:
    job_id = await pages.store.enqueue("judge-nothing")
    poison_job = PoisonJob(job_id, "UNKNOWN_KIND", HOSTILE)
    await pages.store.transact(lambda tx: pages.store.jobs.dead_letter(tx, [poison_job], actor="w1"))
    return job_id


async def test_dead_letter_is_replayed_with_a_reason(pages: AsgiApp) -> None:
    job_id = await _dead_letter(pages)
    letter = (await pages.store.row("SELECT id FROM dead_letters"))["id"]
    async with pages.as_role("admin") as admin, pages.as_role("judge") as judge:
        listed = (await admin.get("/ops/dead-letters")).text
        assert (job_id in listed, HOSTILE in listed) == (True, False)
        assert 'name="do"' not in (await judge.get("/ops/dead-letters")).text
        assert (await judge.post("/ops/dead-letters", data={"letter": letter, "reason": "x"})).status_code == 403
        assert (await admin.post("/ops/dead-letters", data={"letter": letter})).status_code == 400
        done = await admin.post("/ops/dead-letters", data={"letter": letter, "reason": "fixed", "do": "replay"})
        assert done.status_code == 303
        assert "fixed" in (await admin.get("/ops/dead-letters?state=replayed")).text
        assert "replay" in (await admin.get("/ops/audit")).text
    replayed = await pages.store.row("SELECT origin_job_id FROM jobs WHERE status = 'pending'")
    assert replayed["origin_job_id"] == job_id


async def test_job_history_names_actors_and_actions(pages: AsgiApp) -> None:
    published_problem = await publish_problem(pages)
    async with published_problem.user_client() as author, published_problem.user_client("judge") as judge:
        made = await published_problem.submit(author)
        await published_problem.finish(made["job_id"])
        found = await judge.get("/ops/find", params={"job": made["job_id"]})
        history = (await judge.get(found.headers["Location"])).text
        assert ("w1" in history, made["submission_id"] in history) == (True, True)
        assert "claimed by a worker" in history, "why, in words"
        spoken = await judge.get(found.headers["Location"], headers={"Accept-Language": "zh"})
        assert "评测机已领取" in spoken.text
        assert (await author.get("/ops")).status_code == 403


async def test_operations_page_lists_all_roles(pages: AsgiApp) -> None:
    registry = pages.services.ops.registry
    async with pages.as_role("admin") as admin:
        assert "No workers online" in (await admin.get("/ops")).text
        for role in ProcessRole:
            await registry.register(ProcessInfo(f"{role}-7", "host", 7, "1.2.3", role=role))
        await pages.store.clock.advance(ms=4_000)
        shown = (await admin.get("/ops")).text
    assert "No workers online" not in shown
    assert all(f"<code>{role}-7</code>" in shown for role in ProcessRole)
    assert shown.count("1.2.3") == shown.count("4 s ago") == len(ProcessRole)


async def test_operations_page_shows_plots(pages: AsgiApp) -> None:
    sample = {"counters": {"jobs_started": {"kind=judge": 5}}, "gauges": {}, "histograms": {}}
    await pages.store.transact(lambda tx: metric_samples.insert(tx, "a", sample))
    async with pages.as_role("admin") as admin:
        shown = (await admin.get("/ops?hours=6")).text
    assert shown.count('<svg class="plot"') == 8


def test_samples_of_many_processes_become_one_series() -> None:
    def at(second: int, source: str, **fields: object) -> MetricSampleRow:
        return MetricSampleRow(source, second * 1_000_000, {"counters": {}, "gauges": {}, "histograms": {}, **fields})

    found = time_series.time_buckets(
        [
            at(1_005, "a", counters={"jobs_started": {"kind=judge": 20}}, histograms={"w": {"1.0": 9, "+Inf": 10}}),
            at(1_006, "b", counters={"jobs_started": {"kind=judge": 10}}, histograms={"w": {"1.0": 1, "+Inf": 10}}),
            at(1_015, "a", gauges={"queue_depth": {"band=0": 1, "band=2": 4}}),
        ],
        back_sec=600,
    )
    assert time_series.rate_series(found, "started", "jobs_started").points[0][1] == 3.0
    assert found[1].gauge("queue_depth") == 5
    assert found[0].quantile("w", 0.5) == 1.0


def test_a_process_that_knows_no_gauge_changes_no_plot() -> None:
    def at(second: int, source: str, **gauges: object) -> MetricSampleRow:
        return MetricSampleRow(source, second * 1_000_000, {"counters": {}, "gauges": gauges, "histograms": {}})

    found = time_series.time_buckets(
        [at(1_001, "scheduler", dead_letters={"": 3}), at(1_002, "api"), at(1_012, "worker")], back_sec=600
    )
    assert time_series.gauge_series(found, "open", "dead_letters").points == [(1010.0, 3)]


def test_hit_ratio_of_each_tier() -> None:
    counts = {
        "entity=problem:item,result=hit,tier=l1": 6,
        "entity=problem:item,result=stale,tier=l1": 3,
        "entity=problem:item,result=miss,tier=l1": 1,
        "entity=problem:item,result=miss,tier=l2": 1,
        "entity=catalog:list,result=miss,tier=l1": 50,
    }
    row = MetricSampleRow("a", 0, {"counters": {"cache_requests": counts}, "gauges": {}, "histograms": {}})
    found = time_series.time_buckets([row], back_sec=600)
    assert time_series.cache_hit_series(found, "L1", tier="l1").points == [(10.0, 90.0)]
    assert time_series.cache_hit_series(found, "L2", tier="l2").points == [(10.0, 0.0)]
