"""Files of runs over HTTP: sent, named by an artifact, fetched by those who may know of the run."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from hashlib import sha256

import httpx
import pytest

from adjudge.blobs.driver import BlobStore
from adjudge.services.chain_run_files import ArtifactFile, list_artifact_files
from tests.support.asgi_app import AsgiApp

ROOT = "/api/v1"
BYTES = bytes(range(256)) * 40


@dataclass
class RunFilesFixture:
    """People of three roles at the API."""

    admin: httpx.AsyncClient
    setter: httpx.AsyncClient
    service: httpx.AsyncClient


@pytest.fixture
async def run_files(api: AsgiApp) -> AsyncIterator[RunFilesFixture]:
    """All of them logged in."""
    async with api.as_role("admin") as admin, api.as_role("setter") as setter, api.as_role("service") as service:
        yield RunFilesFixture(admin, setter, service)


async def _left(run_files: RunFilesFixture, artifact: object) -> str:
    """A run of the setter's whose one node was completed with ``artifact``."""
    admin, setter = run_files.admin, run_files.setter
    dag = {"nodes": [{"id": "n", "type": "noop"}]}
    assert (await admin.post(f"{ROOT}/chains", json={"name": "c", "dag": dag})).status_code == 201
    run_id: str = (await setter.post(f"{ROOT}/chains/c:start")).json()["run_id"]
    await setter.post(f"{ROOT}/runs/{run_id}:stop")
    done = await setter.post(f"{ROOT}/runs/{run_id}/nodes/n:complete", json={"artifact": artifact})
    assert done.status_code == 200, done.text
    return run_id


async def test_a_file_is_stored_once_and_fetched_by_those_who_may_know_of_the_run(run_files: RunFilesFixture) -> None:
    setter = run_files.setter
    stored = await setter.post(f"{ROOT}/files", content=BYTES)
    digest = sha256(BYTES).hexdigest()
    assert (stored.status_code, stored.json()) == (201, {"digest": digest, "size_bytes": len(BYTES)})
    assert (await setter.post(f"{ROOT}/files", content=BYTES)).json() == stored.json()
    where = f"{ROOT}/runs/{await _left(run_files, {'out': {'digest': digest, 'size_bytes': len(BYTES)}})}/nodes/n/files"
    fetched = await setter.get(f"{where}/{digest}", params={"name": "out.txt"})
    assert (fetched.content, fetched.headers["content-type"]) == (BYTES, "application/octet-stream")
    assert fetched.headers["content-disposition"] == "attachment; filename*=UTF-8''out.txt"
    assert (await run_files.admin.get(f"{where}/{digest}")).content == BYTES
    assert (await run_files.service.get(f"{where}/{digest}")).status_code == 404, "the run is nobody's business"


async def test_only_what_the_artifact_names_is_given_out(api: AsgiApp, run_files: RunFilesFixture) -> None:
    blobs: BlobStore = api.services.run_files.blobs
    other, lost = await blobs.put(b"of somebody else"), sha256(b"never stored").hexdigest()
    where = f"{ROOT}/runs/{await _left(run_files, {'digest': lost, 'longer': f'{other}0'})}/nodes/n/files"
    setter = run_files.setter
    for digest in (other, lost):
        assert (await setter.get(f"{where}/{digest}")).status_code == 404
    assert (await setter.get(f"{where}/..%2Fx")).status_code in {400, 404}
    assert (await setter.get(f"{where}/{'A' * 64}")).status_code == 400


def test_files_are_called_by_the_key_that_they_stand_under() -> None:
    one, two, three = ("1" * 64), ("2" * 64), ("3" * 64)
    artifact = {
        "exit_code": 0,
        "collected": {"out.txt": {"digest": one, "size_bytes": 1}},
        "logs": [{"digest": two, "size_bytes": 2}, {"digest": "short", "size_bytes": 2}],
        "digest": three,
        "size_bytes": 3,
    }
    assert list(list_artifact_files(artifact)) == [
        ArtifactFile(three[:12], three, 3),
        ArtifactFile("out.txt", one, 1),
        ArtifactFile("logs-1", two, 2),
    ]
    assert list(list_artifact_files(None)) == list(list_artifact_files("text")) == []
