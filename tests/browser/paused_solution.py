"""Solutions that pause until the test lets them continue."""

from __future__ import annotations

import asyncio
from pathlib import Path
from types import TracebackType

from adjudge.domain.ids import new_id
from adjudge.judge.compile import PROGRAM_DIRECTORY
from tests.browser.seed_data import SUM
from tests.support.installation import Installation

_WAITING = """# {name}
import time
from pathlib import Path

numbers = input()
gates = [Path("{here}", "open-" + numbers.replace(" ", "-")), Path("{here}", "open")]
while not any(gate.exists() for gate in gates):
    time.sleep(0.01)
input = lambda: numbers
{rest}"""


class PausedSolution:
    """A right solution of ``sum`` that goes on with a test when its gate is opened; all are, at the end.

    The worker shows the program its own folder, read-only: a file that comes into being there is the signal.
    """

    def __init__(self, installation: Installation) -> None:
        self._programs = installation.folder / "compiled" / "entries"
        self._name = new_id()
        self.source = _WAITING.format(name=self._name, here=PROGRAM_DIRECTORY, rest=SUM)

    async def open(self, numbers: str = "") -> None:
        """Let the test with this input go on, or all of them; the program must have been submitted."""
        folder = await self._folder()
        (folder / f"open{numbers and '-'}{numbers.replace(' ', '-')}").touch()

    async def _folder(self) -> Path:
        """The program's folder, as soon as a worker has made it."""
        async with asyncio.timeout(180):
            while (found := self._look()) is None:
                await asyncio.sleep(0.02)
        return found

    def _look(self) -> Path | None:
        entries = self._programs.glob("*/main.py")
        return next((entry.parent for entry in entries if self._name in entry.read_text()), None)

    async def __aenter__(self) -> PausedSolution:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, *_: BaseException | TracebackType | None) -> None:
        """Leave nobody waiting, however the test went."""
        if (folder := self._look()) is not None:
            (folder / "open").touch()
