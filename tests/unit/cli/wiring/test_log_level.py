"""The log level of a running process changes on SIGHUP."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from io import StringIO
from pathlib import Path

import pytest

from adjudge.cli.wiring.process import reload_log_level_on_hangup
from adjudge.observe.logs import get_logger
from tests.support.log_capture import capture_logs


def _events(log: StringIO) -> list[str]:
    return [json.loads(line)["event"] for line in log.getvalue().splitlines()]


async def _hang_up(log: StringIO, event: str) -> None:
    """Send the signal, and wait until it is handled."""
    before = _events(log).count(event)
    os.kill(os.getpid(), signal.SIGHUP)
    async with asyncio.timeout(60):
        while _events(log).count(event) == before:
            await asyncio.sleep(0)


async def test_hangup_applies_the_level_of_the_settings_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "adjudge.toml"
    monkeypatch.setenv("ADJUDGE_CONFIG", str(file))
    monkeypatch.delenv("ADJUDGE_LOG_LEVEL", raising=False)
    log = get_logger("adjudge.test")
    with capture_logs() as lines:
        reload_log_level_on_hangup()
        try:
            file.write_text('[log]\nlevel = "debug"\n')
            await _hang_up(lines, "log_level_changed")
            log.debug("detail_logged")
            file.write_text('[log]\nlevel = "loud"\n')
            await _hang_up(lines, "log_level_reload_failed")
            log.debug("detail_logged")
            file.write_text('[log]\nlevel = "warning"\n')
            await _hang_up(lines, "log_level_changed")
            log.info("detail_logged")
        finally:
            asyncio.get_running_loop().remove_signal_handler(signal.SIGHUP)
    assert _events(lines).count("detail_logged") == 2, "an invalid file changes nothing"
