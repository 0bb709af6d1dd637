"""The section ``printing``."""

from __future__ import annotations

from dataclasses import dataclass

from adjudge.domain.contest import MAX_PRINT_BYTES
from adjudge.settings.setting import declare as _setting


@dataclass(frozen=True, slots=True)
class PrintingSettings:
    """Limits of the print queues of contests."""

    job_bytes: int = _setting(
        256 * 1024, "Maximum size of a print job in bytes.", "PRINTING_JOB_BYTES", minimum=1024, maximum=MAX_PRINT_BYTES
    )
    job_pages: int = _setting(20, "Maximum pages of a print job.", "PRINTING_JOB_PAGES", minimum=1, maximum=1000)
    jobs: int = _setting(10, "Print jobs of a participant per period.", "PRINTING_JOBS", minimum=1, maximum=10_000)
    period_sec: int = _setting(
        600, "Period of printing.jobs in seconds.", "PRINTING_PERIOD_SEC", minimum=1, maximum=86_400
    )
