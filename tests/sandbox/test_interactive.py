"""Two boxes joined by pipes: either side's death, deadlock and flood."""

from __future__ import annotations

import asyncio
import os
from dataclasses import replace
from signal import SIGPIPE

import pytest

from adjudge.sandbox import LimitKind, Limits, RunReport, RunVerdict, Sandbox
from tests.sandbox.host_state import Host
from tests.sandbox.sandbox_case import Box, limits, ms

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.usefixtures("unharmed")]

OK, TLE, OLE, RE, SE = RunVerdict.OK, RunVerdict.TLE, RunVerdict.OLE, RunVerdict.RE, RunVerdict.SE
SHORT = limits(wall_ms=ms(600))
LONG = limits(cpu_ms=ms(3_000))
"""For conversations that do not end by the clock."""


async def _pair(
    box: Box, contestant: tuple[str, ...], interactor: tuple[str, ...], within: Limits = SHORT
) -> tuple[RunReport, RunReport, int]:
    talk = box.sandbox.run_interactive(
        box.spec("talk", *contestant, within=within), box.spec("talk", *interactor, within=within)
    )
    reports = await asyncio.wait_for(talk, ms(120_000) / 1000)
    assert SE not in (reports[0].verdict, reports[1].verdict), reports
    return reports


async def test_a_conversation_of_a_thousand_lines_ends_well(box: Box) -> None:
    contestant, interactor, first = await _pair(box, ("answer",), ("ask", "1000"), limits(cpu_ms=ms(3_000)))
    assert (contestant.verdict, interactor.verdict, first) == (OK, OK, 1)


@pytest.mark.parametrize("death", ["die", "kill"])
async def test_the_contestants_death_ends_the_conversation(box: Box, death: str) -> None:
    contestant, interactor, first = await _pair(box, (death,), ("ask",), LONG)
    assert contestant.verdict is RE
    assert interactor.verdict in (RE, OK)
    assert interactor.limit is None
    assert first in (0, 1)


@pytest.mark.parametrize("death", ["die", "kill"])
async def test_the_interactors_death_ends_the_conversation(box: Box, death: str) -> None:
    contestant, interactor, _ = await _pair(box, ("answer",), (death,), LONG)
    assert interactor.verdict is RE
    assert contestant.verdict in (OK, RE)
    assert contestant.limit is None


async def test_a_deadlock_ends_by_the_wall_clock_for_both(box: Box) -> None:
    contestant, interactor, _ = await _pair(box, ("silent",), ("silent",))
    assert TLE in (contestant.verdict, interactor.verdict)
    assert LimitKind.WALL in (contestant.limit, interactor.limit)


@pytest.mark.parametrize(("contestant", "interactor"), [("flood", "answer"), ("flood", "silent"), ("answer", "flood")])
async def test_a_flood_is_stopped_by_one_limit_or_another(box: Box, contestant: str, interactor: str) -> None:
    reports = await _pair(box, (contestant,), (interactor,))
    flooder = reports[0] if contestant == "flood" else reports[1]
    assert flooder.verdict in (OLE, TLE, RE)


async def test_three_programs_run_at_once_where_there_is_one_slot(box: Box, host: Host) -> None:
    """Two of them talk: neither would end alone. A seat that nobody took is free again."""
    state = host.state / "seats"
    pipes = [os.pipe2(os.O_CLOEXEC) for _ in range(2)]
    async with Sandbox(unsafe=True, slots=1, use_agent=box.way == "agent", state_dir=state) as sandbox:
        async with sandbox.seats(4) as seats:
            first = box.spec("talk", "ask", "10", within=LONG)
            runs = [
                replace(first, stdin=pipes[1][0], stdout=pipes[0][1]),
                replace(box.spec("talk", "answer", within=LONG), stdin=pipes[0][0], stdout=pipes[1][1]),
                box.spec("static_noop"),
            ]
            waiting = [asyncio.create_task(seat.run(spec)) for seat, spec in zip(seats, runs, strict=False)]
            await waiting[0]
            for end in (end for pair in pipes for end in pair):
                os.close(end)
            reports = await asyncio.gather(*waiting)
        assert [report.verdict for report in reports] == [OK, OK, OK]
        assert (await sandbox.run(box.spec("static_noop"))).verdict is OK


async def test_whoever_pours_into_a_side_that_is_gone_ends_at_once(box: Box) -> None:
    """The side that is gone left lines that nobody reads: delivering them must not keep its own input open."""
    contestant, interactor, first = await _pair(box, ("pour",), ("tell", "40"), limits(cpu_ms=ms(3_000)))
    assert (interactor.verdict, first) == (OK, 1)
    assert (contestant.exit_signal, contestant.limit) == (SIGPIPE, None)
