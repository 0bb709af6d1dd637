"""FIFOs between manager and processes: order, direction, EOF, visibility."""

from __future__ import annotations

import asyncio
import itertools
import os
import select
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from adjudge.judge.fifos import Fifos, open_fifos

ORDERS = (("to0", "from0"), ("from0", "to0"))
BIG = 300_000
"""More than a pipe holds: its writer waits for a reader."""


@pytest_asyncio.fixture
async def fifos(tmp_path: Path) -> AsyncIterator[Fifos]:
    with open_fifos(2, tmp_path) as made:
        yield made


def of_manager(fifos: Fifos, name: str) -> Path:
    return fifos.manager_directory / name


def of_process(fifos: Fifos, name: str) -> Path:
    return fifos.lines[0].directory / name


async def opened(path: Path, flags: int) -> int:
    """Open as a program does, waiting; in a thread, so that a test that would wait for ever fails instead."""
    async with asyncio.timeout(30):
        return await asyncio.to_thread(os.open, path, flags)


async def read_all(fd: int) -> bytes:
    """Read up to the end of the stream."""

    def read() -> bytes:
        return b"".join(iter(lambda: os.read(fd, 65_536), b""))

    async with asyncio.timeout(30):
        return await asyncio.to_thread(read)


async def write(fd: int, data: bytes) -> None:
    async with asyncio.timeout(30):
        assert await asyncio.to_thread(os.write, fd, data) == len(data)


async def is_silent(fd: int) -> bool:
    """Whether a reader has neither data nor the end of the stream, once every event so far was handled."""
    for _ in range(20):
        await asyncio.sleep(0)
    poll = select.poll()
    poll.register(fd, select.POLLIN)
    return not poll.poll(0)


async def test_each_process_sees_only_its_own_two_fifos(fifos: Fifos) -> None:
    seen = [sorted(path.name for path in line.directory.iterdir()) for line in fifos.lines]
    assert seen == [["from0", "to0"], ["from1", "to1"]]
    assert len({line.mount.source for line in fifos.lines} | {fifos.manager_mount.source}) == 3
    assert sorted(path.name for path in fifos.manager_directory.iterdir()) == ["from0", "from1", "to0", "to1"]


@pytest.mark.parametrize(
    ("manager_order", "process_order", "written_by_manager"),
    list(itertools.product(ORDERS, ORDERS, ("to0", "from0"))),
)
async def test_any_order_of_opening_and_any_direction(
    fifos: Fifos, manager_order: tuple[str, str], process_order: tuple[str, str], written_by_manager: str
) -> None:
    async def party(directory: Path, order: tuple[str, str], writes: str) -> dict[str, int]:
        return {name: await opened(directory / name, os.O_WRONLY if name == writes else os.O_RDONLY) for name in order}

    written_by_process = {"to0": "from0", "from0": "to0"}[written_by_manager]
    manager = await party(fifos.manager_directory, manager_order, written_by_manager)
    process = await party(fifos.lines[0].directory, process_order, written_by_process)
    await write(manager[written_by_manager], b"question")
    assert os.read(process[written_by_manager], 100) == b"question"
    await write(process[written_by_process], b"answer")
    for fd in process.values():
        os.close(fd)
    fifos.process_ended(fifos.lines[0])
    assert await read_all(manager[written_by_process]) == b"answer"


async def test_closed_fifo_is_eof_while_writer_runs(fifos: Fifos) -> None:
    writer = await opened(of_manager(fifos, "to0"), os.O_WRONLY)
    await write(writer, b"all")
    os.close(writer)
    reader = await opened(of_process(fifos, "to0"), os.O_RDONLY)
    assert await read_all(reader) == b"all"


async def test_reopened_fifo_has_no_early_eof(fifos: Fifos) -> None:
    """As shell scripts do: ``echo question > fifo``, ``read answer < fifo``."""
    for message in (b"one", b"two"):
        reader = await opened(of_process(fifos, "to0"), os.O_RDONLY)
        assert await is_silent(reader)
        writer = await opened(of_manager(fifos, "to0"), os.O_WRONLY)
        await write(writer, message)
        os.close(writer)
        assert await read_all(reader) == message
        os.close(reader)


@pytest.mark.parametrize("name", ["to0", "from0"])
async def test_data_of_ended_process_is_readable(fifos: Fifos, name: str) -> None:
    writer = await opened(of_process(fifos, name), os.O_WRONLY)
    await write(writer, b"last words")
    os.close(writer)
    fifos.process_ended(fifos.lines[0])
    assert await is_silent(await opened(of_manager(fifos, "to1"), os.O_RDONLY))  # the other process lives
    reader = await opened(of_manager(fifos, name), os.O_RDONLY)
    assert await read_all(reader) == b"last words"


@pytest.mark.parametrize("name", ["to0", "from0"])
@pytest.mark.parametrize("process_opens", [True, False])
@pytest.mark.parametrize("manager_opens", ["before", "after"])
async def test_manager_can_write_to_ended_process(
    fifos: Fifos, name: str, manager_opens: str, *, process_opens: bool
) -> None:
    reader = await opened(of_process(fifos, name), os.O_RDONLY) if process_opens else None
    writer = await opened(of_manager(fifos, name), os.O_WRONLY) if manager_opens == "before" else None
    if reader is not None:
        os.close(reader)
    fifos.process_ended(fifos.lines[0])
    writer = await opened(of_manager(fifos, name), os.O_WRONLY) if writer is None else writer
    await write(writer, b"x" * BIG)
    os.close(writer)


async def test_blocked_manager_continues_when_process_ends(fifos: Fifos) -> None:
    reader = await opened(of_process(fifos, "to0"), os.O_RDONLY)
    writer = await opened(of_manager(fifos, "to0"), os.O_WRONLY)
    writing = asyncio.create_task(write(writer, b"x" * BIG))
    assert await asyncio.to_thread(os.read, reader, 1) == b"x"
    os.close(reader)
    fifos.process_ended(fifos.lines[0])
    await writing


async def test_processes_read_eof_after_manager_ends(fifos: Fifos) -> None:
    early = await opened(of_process(fifos, "to0"), os.O_RDONLY)
    fifos.manager_ended()
    late = await opened(fifos.lines[1].directory / "to1", os.O_RDONLY)
    assert await read_all(early) == b""
    assert await read_all(late) == b""
    writer = await opened(of_process(fifos, "from0"), os.O_WRONLY)
    await write(writer, b"x" * BIG)


async def test_stdin_and_stdout_reach_the_manager(fifos: Fifos) -> None:
    stdin, stdout = fifos.lines[0].open_as_stdio()
    from_process = await opened(of_manager(fifos, "from0"), os.O_RDONLY)
    to_process = await opened(of_manager(fifos, "to0"), os.O_WRONLY)
    await write(to_process, b"question")
    os.close(to_process)
    assert await read_all(stdin) == b"question"
    await write(stdout, b"answer")
    os.close(stdout)
    assert await read_all(from_process) == b"answer"
