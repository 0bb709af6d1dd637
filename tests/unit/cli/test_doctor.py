"""``adjudge doctor``: checks other than the sandbox."""

from __future__ import annotations

import pytest

from adjudge.cli import doctor
from adjudge.sandbox.doctor import DoctorReport, HostCheck, HostCheckState


@pytest.mark.parametrize(("url", "is_named"), [("redis://redis.example.org/0", True), ("redis://127.0.0.1/0", False)])
async def test_doctor_reports_an_unprotected_redis(monkeypatch: pytest.MonkeyPatch, url: str, is_named: bool) -> None:
    async def examined() -> DoctorReport:
        return DoctorReport((HostCheck("launcher", HostCheckState.MISSING, "", "", ""),))

    monkeypatch.setattr(doctor, "run_checks", examined)
    monkeypatch.setenv("REDIS_URL", url)
    checks = {check.name: check for check in (await doctor._examine()).checks}
    assert ("redis" in checks) is is_named
    if is_named:
        assert checks["redis"].state is HostCheckState.DEGRADED
        assert "rediss://" in checks["redis"].fix
