"""Response models: built from rows, encoded by the server, decoded by the client."""

from __future__ import annotations

import dataclasses
import importlib
import json
import pkgutil
from types import SimpleNamespace

import pytest
from pydantic import TypeAdapter

from adjudge import schema
from adjudge.api.schema.base import decode_json, encode_json
from adjudge.domain.states import NodeStatus
from adjudge.domain.verdict import Verdict
from adjudge.schema.base import ResponseModel
from adjudge.schema.chain_runs import NodeLogLineList, NodeRead
from adjudge.schema.executions import ExecutionRunRead
from adjudge.schema.submissions import SubmissionRead

for module in pkgutil.iter_modules(schema.__path__):
    importlib.import_module(f"adjudge.schema.{module.name}")
MODELS = sorted(ResponseModel.__subclasses__(), key=lambda model: model.__name__)
NODE = {"node_id": "a", "type": "noop", "status": "success", "attempt": 1, "artifact": {"n": 1}, "place": None}


def _row() -> SimpleNamespace:
    names = SubmissionRead.__dataclass_fields__.keys() - {"problem"}
    row = SimpleNamespace(**dict.fromkeys(names))
    vars(row).update(
        id="s1", problem_slug="sum", status="accepted", verdict="AC", score=1, version=3, created_at=1_000_000
    )
    return row


def test_model_of_a_row_renames_formats_and_converts() -> None:
    made = SubmissionRead.of(_row(), user_name="ada")
    assert (made.problem, made.user_name, made.finished_at) == ("sum", "ada", None)
    assert made.created_at == "1970-01-01T00:00:01.000Z"
    assert made.verdict is Verdict.AC
    assert isinstance(made.score, float)
    assert made.is_finished
    assert made.extra == {}


def test_row_without_an_attribute_is_an_error() -> None:
    row = _row()
    del row.language
    with pytest.raises(AttributeError):
        SubmissionRead.of(row)


def test_nested_models_are_built_from_mappings() -> None:
    line = {"id": 1, "attempt": 1, "text": "hello", "at": 0}
    (made,) = NodeLogLineList.of({"items": [line]}).items
    assert (made.text, made.at) == ("hello", "1970-01-01T00:00:00.000Z")
    run = dict.fromkeys(ExecutionRunRead.__dataclass_fields__) | {"limit_hit": "time", "is_truncated": 1}
    made_run = ExecutionRunRead.of(run)
    assert (made_run.limit, made_run.is_truncated) == ("time", True)


def test_client_accepts_missing_and_unknown_fields_and_values() -> None:
    found = NodeRead.from_json(NODE | {"color": "red", "status": "sleeping-again"})
    assert (found.status, found.last_error, found.extra) == ("sleeping-again", None, {"color": "red"})
    assert NodeRead.from_json(NODE).status is NodeStatus.SUCCESS
    refused: list[object] = [None, [], "text"]
    for wrong in refused:
        with pytest.raises(ValueError, match="expected NodeRead, got"):
            NodeRead.from_json(wrong)
    with pytest.raises(ValueError, match="expected NodeLogLineRead, got int"):
        NodeLogLineList.from_json({"items": [1]})


def test_client_reads_what_the_server_encodes() -> None:
    made = SubmissionRead.of(_row(), **dict.fromkeys(("number", "source_bytes"), 7))
    body = encode_json(made)
    assert SubmissionRead.from_json(json.loads(body)) == made
    plain = {**json.loads(body), "user_id": "u", "user_name": "ada", "problem_id": "p", "revision_id": "r"}
    plain |= {"language": "cpp20", "updated_at": "1970-01-01T00:00:01.000Z"}
    assert decode_json(SubmissionRead, json.dumps(plain).encode()).problem == "sum"


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.__name__)
def test_schema_of_every_model_names_every_field(model: type[ResponseModel]) -> None:
    described = TypeAdapter(model).json_schema(mode="serialization")
    names = {field.name for field in dataclasses.fields(model)}  # type: ignore[arg-type]  # every subclass is a dataclass
    assert described["properties"].keys() == names
    assert described["description"] == model.__doc__
