"""Rules shared by both stream drivers: names, bands, fair share, validation."""

from __future__ import annotations

import os
import socket
from collections import Counter

import pytest

from adjudge.domain.errors import InvalidInput
from adjudge.domain.priority import BANDS, band_of
from adjudge.stream import MessageBody, codec, consumer_name
from adjudge.stream.fair_share import FairShare


def test_consumer_name_precedence() -> None:
    assert consumer_name("configured", "worker-7") == "configured"
    assert consumer_name(None, "worker-7") == "worker-7"
    assert consumer_name("", "") == f"{socket.gethostname()}-{os.getpid()}"


@pytest.mark.parametrize(("given", "variable"), [(("a b", None), "JOB_STREAM_CONSUMER"), ((None, "-x"), "WORKER_ID")])
def test_invalid_consumer_name_error_names_variable(given: tuple[str | None, str | None], variable: str) -> None:
    with pytest.raises(InvalidInput, match=variable):
        consumer_name(*given)


@pytest.mark.parametrize(("priority", "band"), [(-9, 0), (0, 0), (2, 2), (3, 3), (99, 3)])
def test_every_priority_has_a_band(priority: int, band: int) -> None:
    assert band_of(priority) == band
    assert MessageBody("j", priority, "judge").band == band


@pytest.mark.parametrize("step", [1, 3, 16, 100])
def test_each_lower_band_has_one_slot_in_sixteen(step: int) -> None:
    fair_share, reserved = FairShare(), Counter[int]()
    for _ in range(1600 // step):
        reserved.update(fair_share.reserved_quota(step))
    for band in BANDS[1:]:
        assert abs(reserved[band] - 1600 // step * step / 16) <= 1
    assert reserved[0] == 0


@pytest.mark.parametrize(
    ("body", "field"),
    [
        (MessageBody("", 2, "judge"), "job_id"),
        (MessageBody("j" * 257, 2, "judge"), "job_id"),
        (MessageBody("j", 2, "ju\ndge"), "kind"),
        (MessageBody("j", 2, "judge", "t\x00"), "trace_id"),
        (MessageBody("j", 2, "judge", None, {"source": "print(1)\nprint(2)"}), "payload.source"),
        (MessageBody("j", 2, "judge", None, {"log": "x" * 257}), "payload.log"),
        (MessageBody("j", 2, "judge", None, {f"k{number}": 1 for number in range(33)}), "payload"),
        (MessageBody("j", 2, "judge", None, {"flag": True}), "payload.flag"),
    ],
)
def test_only_identifiers_are_accepted(body: MessageBody, field: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        codec.check_identifiers_only(body)
    assert caught.value.fields == {"field": field}


def test_envelope_round_trip() -> None:
    body = MessageBody("j-1", 1, "node", None, {"run": "r-1", "attempt": 2, "parent": None})
    fields = {"job_id": "j-1", "enqueue_ts": "17", "payload_ref": "key", "priority": "1"}
    message = codec.decode("5-0", 1, fields, codec.encode(body), deliveries=3)
    assert message.body == body
    assert (message.defect, message.enqueued_at_ms, message.payload_ref, message.delivery_count) == (None, 17, "key", 3)


@pytest.mark.parametrize("invalid", [{"priority": "high"}, {"enqueue_ts": "noon"}, {"enqueue_ts": "²"}, {"job_id": ""}])
def test_undecodable_field_counts_as_missing(invalid: dict[str, str]) -> None:
    fields = {"job_id": "j", "enqueue_ts": "17", "payload_ref": "key", "priority": "1"} | invalid
    message = codec.decode("5-0", 1, fields, codec.encode(MessageBody("j", 1, "judge")))
    assert (message.defect, message.body) == ("missing_field", None)
