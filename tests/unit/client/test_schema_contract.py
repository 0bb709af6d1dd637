"""The client's models against the API's schema: every field that the client reads exists there."""

from __future__ import annotations

import dataclasses

import pytest
from pydantic import BaseModel

from adjudge.api.schema import (
    account,
    chain_apply,
    chain_runs,
    chains,
    executions,
    files,
    problems,
    rejudge,
    secrets,
    submissions,
)
from adjudge.client import models
from adjudge.client.decode import ResponseModel

SCHEMA: dict[type[ResponseModel], type[BaseModel]] = {
    models.Token: account.TokenCreated,
    models.Me: account.AccountRead,
    models.Language: problems.LanguageRead,
    models.ProblemItem: problems.ProblemSummary,
    models.Limits: problems.LimitsRead,
    models.Sample: problems.SampleRead,
    models.Problem: problems.ProblemRead,
    models.Submitted: submissions.SubmissionCreated,
    models.Submission: submissions.SubmissionRead,
    models.Results: submissions.SubmissionResultsRead,
    models.ExecutionRun: executions.ExecutionRunRead,
    models.Execution: executions.ExecutionRead,
    models.ImportStarted: problems.ImportAccepted,
    models.Import: problems.ImportRead,
    models.Chain: chains.ChainRead,
    models.SecretName: secrets.SecretInfo,
    models.Trigger: chains.TriggerCreated,
    models.Applied: chain_apply.ChainApplyRead,
    models.RunStarted: chain_runs.ChainRunStarted,
    models.Run: chain_runs.ChainRunRead,
    models.Node: chain_runs.NodeRead,
    models.LogLine: chain_runs.NodeLogLineRead,
    models.StoredFile: files.FileCreated,
    models.RejudgeBatch: rejudge.RejudgeBatchRead,
    models.RejudgePreview: rejudge.RejudgePreviewRead,
    models.RejudgeApplied: rejudge.RejudgeApplyRead,
}
EVENTS = {models.SubmissionEventRead}
"""Payloads of event streams, which have no response model in the API."""


@pytest.mark.parametrize("model", SCHEMA, ids=lambda model: model.__name__)
def test_every_field_of_the_client_is_in_the_schema(model: type[ResponseModel]) -> None:
    schema = SCHEMA[model]
    offered = {field.serialization_alias or field.alias or name for name, field in schema.model_fields.items()}
    offered |= set(schema.model_computed_fields)
    known = {field.name for field in dataclasses.fields(model)} - {"extra"}
    assert known <= offered


def test_every_model_is_compared() -> None:
    declared = {
        item
        for item in vars(models).values()
        if isinstance(item, type) and issubclass(item, ResponseModel) and item is not ResponseModel
    }
    assert declared == SCHEMA.keys() | EVENTS
