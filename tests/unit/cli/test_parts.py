"""Settings become what a worker is told."""

from __future__ import annotations

import pytest

from adjudge import settings
from adjudge.cli.parts import _worker_settings
from adjudge.domain.errors import InvalidInput


def test_a_worker_reads_the_stream_under_its_own_name_unless_told_otherwise() -> None:
    plain = settings.load(environ={})
    assert _worker_settings(plain, "w-1", 2).consumer == "w-1"
    named = settings.load(environ={"JOB_STREAM_CONSUMER": "reader-7", "WORKER_ID": "w-1"})
    told = _worker_settings(named, "w-1", 2)
    assert (told.name, told.consumer) == ("w-1", "reader-7")


def test_limits_and_rate_are_settings() -> None:
    loaded = settings.load(environ={"ADJUDGE_WORKER_LIMITS": "language:java=1, kind:node = 4"})
    assert _worker_settings(loaded, "w", 2).limits == {"language:java": 1, "kind:node": 4}
    assert settings.load(environ={"ADJUDGE_WORKER_RATE_PER_SEC": "2.5"}).worker.rate_per_sec == 2.5


@pytest.mark.parametrize("text", ["java=1", "language:java", "language:java=0", "language:java=1;kind:node=2"])
def test_a_limit_that_means_nothing_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput, match="WORKER_LIMITS"):
        settings.load(environ={"ADJUDGE_WORKER_LIMITS": text})
