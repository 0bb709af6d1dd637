"""Two boxes joined by pipes: either side's death, deadlock and flood."""

from __future__ import annotations

import asyncio
from signal import SIGPIPE

import pytest

from adjudge.sandbox import LimitKind, Limits, RunReport, RunVerdict
from tests.sandbox.case import Box, limits, ms

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.usefixtures("unharmed")]

OK, TLE, OLE, RE, SE = RunVerdict.OK, RunVerdict.TLE, RunVerdict.OLE, RunVerdict.RE, RunVerdict.SE
SHORT = limits(wall_ms=ms(600))


async def _pair(
    box: Box, contestant: tuple[str, ...], interactor: tuple[str, ...], within: Limits = SHORT
) -> tuple[RunReport, RunReport, int]:
    talk = box.sandbox.run_interactive(
        box.spec("talk", *contestant, within=within), box.spec("talk", *interactor, within=within)
    )
    reports = await asyncio.wait_for(talk, ms(30_000) / 1000)
    assert SE not in (reports[0].verdict, reports[1].verdict), reports
    return reports


async def test_a_conversation_of_a_thousand_lines_ends_well(box: Box) -> None:
    contestant, interactor, first = await _pair(box, ("answer",), ("ask", "1000"), limits(cpu_ms=ms(3_000)))
    assert (contestant.verdict, interactor.verdict, first) == (OK, OK, 1)


@pytest.mark.parametrize("death", ["die", "kill"])
async def test_the_contestants_death_ends_the_conversation(box: Box, death: str) -> None:
    contestant, interactor, first = await _pair(box, (death,), ("ask",))
    assert contestant.verdict is RE
    assert interactor.verdict in (RE, OK)
    assert interactor.limit is None
    assert first in (0, 1)


@pytest.mark.parametrize("death", ["die", "kill"])
async def test_the_interactors_death_ends_the_conversation(box: Box, death: str) -> None:
    contestant, interactor, _ = await _pair(box, ("answer",), (death,))
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


async def test_whoever_pours_into_a_side_that_is_gone_ends_at_once(box: Box) -> None:
    """The side that is gone left lines that nobody reads: delivering them must not keep its own input open."""
    contestant, interactor, first = await _pair(box, ("pour",), ("tell", "40"), limits(cpu_ms=ms(3_000)))
    assert (interactor.verdict, first) == (OK, 1)
    assert (contestant.exit_signal, contestant.limit) == (SIGPIPE, None)
