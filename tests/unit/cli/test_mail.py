"""``adjudge mail test`` and ``adjudge user reset-link``."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from click.testing import CliRunner

from adjudge.cli import main
from tests.support.smtp_server import smtp_server


def _run(*argv: str) -> tuple[int, str]:
    result = CliRunner().invoke(main, list(argv))
    return result.exit_code, result.output


async def test_mail_server_is_checked_with_a_mail(monkeypatch: pytest.MonkeyPatch) -> None:
    async with smtp_server() as mailbox:
        monkeypatch.setenv("ADJUDGE_SMTP_URL", mailbox.url)
        code, output = await asyncio.to_thread(_run, "mail", "test", "ann@example.org")
        assert code != 0
        assert "mail.sender" in output
        monkeypatch.setenv("ADJUDGE_MAIL_SENDER", "judge@judge.example")
        assert await asyncio.to_thread(_run, "mail", "test", "ann@example.org") == (0, "sent to ann@example.org\n")
        assert mailbox.received[0]["Subject"] == "Adjudge: test"


def test_missing_mail_server_is_named() -> None:
    code, output = _run("mail", "test", "ann@example.org")
    assert code != 0
    assert "ADJUDGE_SMTP_URL" in output


def test_reset_link_is_printed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ADJUDGE_DATABASE_URL", f"sqlite:///{tmp_path}/a.db")
    assert _run("user", "add", "ann")[0] == 0
    code, output = _run("user", "reset-link", "ann", "--reason", "forgotten")
    assert code == 0
    assert "/reset-password?token=rst_" in output
