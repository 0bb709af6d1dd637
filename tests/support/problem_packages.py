"""Problems for tests: packages as archives, imported as a worker would, or put straight into the store."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

from adjudge.blobs.cache import BlobCache
from adjudge.judge.pipeline import Judge
from adjudge.store.jobs.models import Fence, JobResult
from adjudge.worker.handlers.import_package import ProblemImportHandler
from tests.support.asgi_app import AsgiApp

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples" / "problems"

YAML = "problem_format_version: '2025-09'\nname: {title}\nuuid: 5ca6ba5b-36d5-4eff-8aa7-d967cbc4375e\n"


def icpc_package(title: str = "A Problem", **files: str | bytes) -> dict[str, bytes]:
    """A small ICPC package; ``files`` are added or replaced, by path."""
    base: dict[str, str | bytes] = {
        "problem.yaml": YAML.format(title=title) + "limits:\n  time_limit: 1.0\n",
        "statement/problem.en.md": "Add *two* numbers $a$ and $b$.\n",
        "data/sample/1.in": "1 2\n",
        "data/sample/1.ans": "3\n",
        "data/secret/1.in": "5 6\n",
        "data/secret/1.ans": "11\n",
        "submissions/accepted/sum.py": "print(sum(map(int, input().split())))\n",
        "attachments/hint.txt": "Think.\n",
    }
    both = base | files
    return {name: data.encode() if isinstance(data, str) else data for name, data in both.items()}


def zip_files(files: Mapping[str, bytes]) -> bytes:
    """A ZIP of files."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as target:
        for name, data in files.items():
            target.writestr(name, data)
    return buffer.getvalue()


def folder_archive(folder: Path) -> bytes:
    """A ZIP of a folder."""
    paths = sorted(path for path in folder.rglob("*") if path.is_file())
    return zip_files({path.relative_to(folder).as_posix(): path.read_bytes() for path in paths})


async def run_pending_imports(api: AsgiApp, folder: Path, judge: Judge | None = None) -> int:
    """Carry out the imports that wait, as a worker does; return how many. Verifications need a judge."""
    rows = await api.store.rows(
        """
        SELECT jobs.id AS id FROM jobs JOIN problem_imports ON job_id = jobs.id
        WHERE kind = 'import' AND status = 'pending' AND (purpose = 'import' OR :has_judge = 1)
        """,
        has_judge=int(judge is not None),
    )
    cache = BlobCache(api.services.run_files.blobs, folder / "blob-cache", max_bytes=1 << 30)
    handler = ProblemImportHandler(api.services.ops.database, api.services.run_files.blobs, cache, cast("Judge", judge))
    for row in rows:
        claimed = await api.store.claim(row["id"])
        job = claimed.done[0]
        completion = await handler.run(job)
        finish = JobResult(
            Fence(job.id, job.attempt_id, "w1"), completion.status, completion.result, completion.typed_result
        )
        await api.store.transact(lambda tx, finish=finish: api.store.jobs.finish_and_claim_next(tx, [finish]))  # type: ignore[misc]  # a default binds it
    return len(rows)


async def import_package(
    api: AsgiApp, folder: Path, token: str, data: bytes, judge: Judge | None = None, **query: Any
) -> dict[str, Any]:
    """Upload an archive and carry its import out; return the import as it ended.

    Without a judge nothing can be verified: what is to be published is published by hand.
    """
    manually = judge is None and query.pop("publish", False)
    async with api.client(token) as client:
        answer = await client.post("/api/v1/problems:import", content=data, params=query)
        assert answer.status_code == 202, answer.text
        await run_pending_imports(api, folder, judge)
        found: dict[str, Any] = (await client.get(answer.json()["url"])).json()
        if manually and found["state"] == "succeeded":
            row = await api.store.row("SELECT version FROM problems WHERE id = :id", id=found["problem_id"])
            body = {"version": row["version"], "revision": found["revision"]}
            published = await client.post(f"/api/v1/problems/{found['slug']}:publish", json=body)
            assert published.status_code == 200, published.text
    return found


def write_generated_package(folder: Path) -> Path:
    """Write a DMOJ package whose test case is generated: the input on stdout, the answer on stderr."""
    folder.mkdir()
    (folder / "init.yml").write_text("generator: gen.py\ntest_cases:\n- {generator_args: [21], points: 1}\n")
    (folder / "gen.py").write_text("import sys\nn = int(sys.argv[1])\nprint(n)\nprint(2 * n, file=sys.stderr)\n")
    return folder
