"""Two programs connected by pipes: exit of either side, deadlock, flood."""

from __future__ import annotations

import asyncio
import os
from dataclasses import replace
from signal import SIGPIPE

import pytest

from adjudge.sandbox import LimitKind, Limits, Sandbox, SandboxRunReport, SandboxVerdict
from tests.sandbox.host_state import HostState
from tests.sandbox.sandbox_case import SandboxCase, limits, ms

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.usefixtures("unchanged_host")]

OK, TLE, OLE, RE, SE = SandboxVerdict.OK, SandboxVerdict.TLE, SandboxVerdict.OLE, SandboxVerdict.RE, SandboxVerdict.SE
SHORT = limits(wall_ms=ms(600))
LONG = limits(cpu_ms=ms(3_000))
"""For interactions that do not end at the wall limit."""


async def _pair(
    sandbox_case: SandboxCase, contestant: tuple[str, ...], interactor: tuple[str, ...], within: Limits = SHORT
) -> tuple[SandboxRunReport, SandboxRunReport, int]:
    interaction = sandbox_case.sandbox.run_interactive(
        sandbox_case.spec("interact", *contestant, within=within),
        sandbox_case.spec("interact", *interactor, within=within),
    )
    reports = await asyncio.wait_for(interaction, ms(120_000) / 1000)
    assert SE not in (reports[0].verdict, reports[1].verdict), reports
    return reports


async def test_interaction_of_1000_lines_succeeds(sandbox_case: SandboxCase) -> None:
    contestant, interactor, first = await _pair(sandbox_case, ("answer",), ("ask", "1000"), limits(cpu_ms=ms(3_000)))
    assert (contestant.verdict, interactor.verdict, first) == (OK, OK, 1)


@pytest.mark.parametrize("how", ["exit", "kill"])
async def test_contestant_exit_ends_interaction(sandbox_case: SandboxCase, how: str) -> None:
    contestant, interactor, first = await _pair(sandbox_case, (how,), ("ask",), LONG)
    assert contestant.verdict is RE
    assert interactor.verdict in (RE, OK)
    assert interactor.limit is None
    assert first in (0, 1)


@pytest.mark.parametrize("how", ["exit", "kill"])
async def test_interactor_exit_ends_interaction(sandbox_case: SandboxCase, how: str) -> None:
    contestant, interactor, _ = await _pair(sandbox_case, ("answer",), (how,), LONG)
    assert interactor.verdict is RE
    assert contestant.verdict in (OK, RE)
    assert contestant.limit is None


async def test_deadlock_ends_at_wall_limit(sandbox_case: SandboxCase) -> None:
    contestant, interactor, _ = await _pair(sandbox_case, ("silent",), ("silent",))
    assert TLE in (contestant.verdict, interactor.verdict)
    assert LimitKind.WALL in (contestant.limit, interactor.limit)


@pytest.mark.parametrize(("contestant", "interactor"), [("flood", "answer"), ("flood", "silent"), ("answer", "flood")])
async def test_flooding_side_is_stopped_by_limit(sandbox_case: SandboxCase, contestant: str, interactor: str) -> None:
    reports = await _pair(sandbox_case, (contestant,), (interactor,))
    flooder = reports[0] if contestant == "flood" else reports[1]
    assert flooder.verdict in (OLE, TLE, RE)


async def test_reserved_slots_may_exceed_the_slot_count(sandbox_case: SandboxCase, host: HostState) -> None:
    """Two of them interact, so neither would end alone. An unused seat is released."""
    state = host.state / "seats"
    pipes = [os.pipe2(os.O_CLOEXEC) for _ in range(2)]
    async with Sandbox(unsafe=True, slots=1, use_agent=sandbox_case.mode == "agent", state_dir=state) as sandbox:
        async with sandbox.reserve_slots(4) as slots:
            first = sandbox_case.spec("interact", "ask", "10", within=LONG)
            runs = [
                replace(first, stdin=pipes[1][0], stdout=pipes[0][1]),
                replace(sandbox_case.spec("interact", "answer", within=LONG), stdin=pipes[0][0], stdout=pipes[1][1]),
                sandbox_case.spec("static_noop"),
            ]
            waiting = [asyncio.create_task(slot.run(spec)) for slot, spec in zip(slots, runs, strict=False)]
            await waiting[0]
            for end in (end for pair in pipes for end in pair):
                os.close(end)
            reports = await asyncio.gather(*waiting)
        assert [report.verdict for report in reports] == [OK, OK, OK]
        assert (await sandbox.run(sandbox_case.spec("static_noop"))).verdict is OK


async def test_writer_gets_sigpipe_when_reader_exited(sandbox_case: SandboxCase) -> None:
    """The exited side left unread output. Delivering it must not keep its stdin open."""
    contestant, interactor, first = await _pair(
        sandbox_case, ("write_forever",), ("write", "40"), limits(cpu_ms=ms(3_000))
    )
    assert (interactor.verdict, first) == (OK, 1)
    assert (contestant.exit_signal, contestant.limit) == (SIGPIPE, None)
