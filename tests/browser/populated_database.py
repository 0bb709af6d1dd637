"""A database with every kind of object, with hostile text in every text field."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import httpx

from tests.browser.seed_data import HOSTILE, SUM, package_with_large_limits
from tests.support.installation import Installation

CHECKER: Final = f"""
import sys
from pathlib import Path

for name in ("teammessage.txt", "judgemessage.txt"):
    Path(sys.argv[3], name).write_text({HOSTILE!r})
sys.exit(43)
"""
DOES_NOT_COMPILE: Final = f"#error {HOSTILE}\n"
SAYS_IT: Final = f"import sys\nprint({HOSTILE!r})\nprint({HOSTILE!r}, file=sys.stderr)\nsys.exit(1)\n"


@dataclass(frozen=True)
class CreatedObjects:
    """Where to look."""

    paths: dict[str, str]
    """A page of each kind, by the template of its address."""
    more: dict[str, str]
    """Further pages worth a look, by what is on them."""


def _reset_link(installation: Installation) -> str:
    """A one-time link, from the command that admins use."""
    argv = [sys.executable, "-m", "adjudge", "user", "reset-link", "contestant", "--reason", "forgotten"]
    env = {**os.environ, "ADJUDGE_DATA_DIR": str(installation.folder), **installation.environment}
    done = subprocess.run(argv, env=env, capture_output=True, text=True, check=True)
    return done.stdout[done.stdout.index("/reset-password") :].strip()


def populate(installation: Installation) -> CreatedObjects:
    """Let everything happen once; say where it can be seen."""
    checked = package_with_large_limits("Checked", **{"output_validator/check.py": CHECKER})
    installation.publish_manually(checked, "checked")  # its own solutions are rejected
    installation.publish(package_with_large_limits("Twice"), slug="twice")
    twice = installation.publish(
        package_with_large_limits("Twice", **{"attachments/hint.txt": HOSTILE}), slug="twice", verify=True
    )
    with installation.client("contestant") as contestant:
        accepted = installation.submit_and_wait(contestant, "sum", SUM)
        rejected = installation.submit_and_wait(contestant, "checked", SUM)
        refused = installation.submit_and_wait(contestant, "sum", DOES_NOT_COMPILE, "c")
        crashed = installation.submit_and_wait(contestant, "hostile", SAYS_IT)
    run = _posted(
        installation.admin, "/api/v1/chains/release:start", {"parameters": {"slug": HOSTILE}, "reason": HOSTILE}
    )
    run_id = run["run_id"]
    installation.wait_until(f"/api/v1/runs/{run_id}/nodes/ask", lambda it: it["wait_on"] is not None)
    decision = {"approved": True, "reason": HOSTILE}
    _posted(installation.admin, f"/api/v1/runs/{run_id}/nodes/ask:decide", decision)
    installation.wait_until(f"/api/v1/runs/{run_id}", lambda it: it["status"] == "failed")
    batch = _posted(installation.admin, "/api/v1/rejudge-batches", {"filter": {"problem": "sum"}, "reason": HOSTILE})
    installation.wait_until(f"/api/v1/rejudge-batches/{batch['id']}", lambda it: it["state"] == "ready")
    _posted(installation.admin, "/api/v1/me/tokens", {"name": HOSTILE[:100], "scopes": ["problem:read"]})
    body = {"url": "https://hooks.invalid/hostile?<script>", "events": ["submission.judged", "submission.rejudged"]}
    webhook_id = _posted(installation.admin, "/api/v1/webhooks", body)["webhook"]["id"]
    _posted(installation.admin, f"/api/v1/webhooks/{webhook_id}:ping", {})
    installation.admin.put(
        "/api/v1/secrets/SCOREBOARD_TOKEN", json={"value": "correct-horse-battery"}
    ).raise_for_status()
    participant, question_id = _create_contest(installation)
    _create_rated_contest(installation)
    _create_team_contest(installation)
    job_id = installation.admin.get(f"/api/v1/submissions/{accepted}/judge-runs").json()["items"][0]["id"]
    paths = {
        "/login": "/login",
        "/forgot-password": "/forgot-password",
        "/reset-password": _reset_link(installation),
        "/register": "/register",
        "/me": "/me",
        "/me/password": "/me/password",
        "/me/tokens": "/me/tokens",
        "/me/webhooks": "/me/webhooks",
        "/me/webhooks/{webhook_id}": f"/me/webhooks/{webhook_id}",
        "/problems": "/problems",
        "/problems/{name}": "/problems/hostile",
        "/contests": "/contests",
        "/contests/new": "/contests/new",
        "/contests/import": "/contests/import",
        "/contests/{slug}": "/contests/hostile",
        "/contests/{slug}/register": "/contests/hostile/register",
        "/contests/{slug}/participants": "/contests/hostile/participants",
        "/contests/{slug}/participants/{code}": f"/contests/hostile/participants/{participant['code']}",
        "/contests/{slug}/import": "/contests/hostile/import",
        "/contests/{slug}/add-participant": "/contests/hostile/add-participant",
        "/contests/{slug}/groups": "/contests/hostile/groups",
        "/contests/{slug}/organizations": "/contests/hostile/organizations",
        "/contests/{slug}/invitations": "/contests/hostile/invitations",
        "/contests/{slug}/accounts": "/contests/hostile/accounts",
        "/contests/{slug}/problems": "/contests/hostile/problems",
        "/contests/{slug}/problems/{label}": "/contests/hostile/problems/A",
        "/contests/{slug}/submissions": "/contests/hostile/submissions",
        "/contests/{slug}/submissions/all": "/contests/hostile/submissions/all",
        "/contests/{slug}/jury": "/contests/hostile/jury",
        "/contests/{slug}/jury/penalties": "/contests/hostile/jury/penalties",
        "/contests/{slug}/jury/submissions": "/contests/hostile/jury/submissions",
        "/contests/{slug}/jury/submissions/{number}": "/contests/hostile/jury/submissions/2",
        "/contests/{slug}/settings": "/contests/hostile/settings",
        "/contests/{slug}/settings/problems": "/contests/hostile/settings/problems",
        "/contests/{slug}/settings/materials": "/contests/hostile/settings/materials",
        "/contests/{slug}/settings/roles": "/contests/hostile/settings/roles",
        "/contests/{slug}/settings/lifecycle": "/contests/hostile/settings/lifecycle",
        "/contests/{slug}/scoreboard": "/contests/hostile/scoreboard",
        "/contests/{slug}/scoreboard/{participant}/{label}": f"/contests/hostile/scoreboard/{participant['id']}/A",
        "/contests/{slug}/resolver": "/contests/hostile/resolver",
        "/contests/{slug}/balloons": "/contests/hostile/balloons",
        "/contests/{slug}/prints": "/contests/hostile/prints",
        "/contests/{slug}/prints/{number}": "/contests/hostile/prints/1",
        "/contests/{slug}/awards": "/contests/hostile/awards",
        "/contests/{slug}/statistics": "/contests/hostile/statistics",
        "/contests/{slug}/participants/{code}/photo": "/contests/hostile/participants/hostile-team/photo",
        "/contests/{slug}/clarifications": "/contests/hostile/clarifications",
        "/contests/{slug}/clarifications/{clarification_id}": f"/contests/hostile/clarifications/{question_id}",
        "/ratings": "/ratings",
        "/users/{user}/rating": "/users/contestant/rating",
        "/submissions": "/submissions?all=1",
        "/submissions/{submission_id}": f"/submissions/{accepted}",
        "/manage": "/manage",
        "/manage/imports/{import_id}": f"/manage/imports/{twice['id']}",
        "/manage/problems/{name}": "/manage/problems/twice",
        "/manage/problems/{name}/revisions/{number}": "/manage/problems/twice/revisions/2",
        "/manage/problems/{name}/diff": "/manage/problems/twice/diff?old=1&new=2",
        "/chains": "/chains",
        "/chains/{chain}": "/chains/release",
        "/runs/{run_id}": f"/runs/{run_id}",
        "/runs/{run_id}/nodes/{node_id}": f"/runs/{run_id}/nodes/fragile",
        "/rejudge": "/rejudge",
        "/rejudge/{batch_id}": f"/rejudge/{batch['id']}",
        "/api/v1/docs": "/api/v1/docs",
        "/ops": "/ops",
        "/ops/dead-letters": "/ops/dead-letters",
        "/ops/jobs/{job_id}": f"/ops/jobs/{job_id}",
        "/ops/audit": "/ops/audit",
        "/ops/control": "/ops/control",
        "/ops/secrets": "/ops/secrets",
    }
    more = {
        "a checker's message": f"/submissions/{rejected}",
        "a compiler's message": f"/submissions/{refused}",
        "a program's own words": f"/submissions/{crashed}",
        "a question": f"/runs/{run_id}/nodes/ask",
        "an empty list": "/problems?q=nothing-is-called-that",
        "delivered balloons": "/contests/hostile/balloons?state=all",
        "a projector": "/contests/hostile/scoreboard?projector=1",
        "a form for teams": "/contests/teams/register",
        "a contest that is over": "/contests/rated/register",
    }
    return CreatedObjects(paths, more)


def _create_contest(installation: Installation) -> tuple[dict[str, Any], str]:
    """A running contest; return a participant and a question."""
    body = {"slug": "hostile", "title": HOSTILE[:200], "description": HOSTILE, "duration_sec": 18_000}
    body |= {"balloons_enabled": True, "freeze_balloon_minimum": 3, "printing_enabled": True}
    _posted(installation.admin, "/api/v1/contests", body)
    problems = {"problems": [{"problem": "sum", "alias": HOSTILE[:200], "rgb": "#e11d48"}, {"problem": "twice"}]}
    installation.admin.put("/api/v1/contests/hostile/problems", json=problems).raise_for_status()
    _posted(installation.admin, "/api/v1/contests/hostile:start", {})
    _posted(installation.admin, "/api/v1/contests/hostile:publish", {})
    _posted(installation.admin, "/api/v1/contests/hostile:register", {})
    solution = {"contest": "hostile", "problem": "A", "language": "python", "source": SUM}
    solved = _posted(installation.admin, "/api/v1/submissions", solution)["submission_id"]
    installation.wait_until(f"/api/v1/submissions/{solved}", lambda it: it["verdict"] == "AC")
    _posted(installation.admin, "/api/v1/submissions", solution | {"source": SAYS_IT})
    decision = {"verdict": "WA", "reason": HOSTILE[:500], "confirmed": True}
    _posted(installation.admin, "/api/v1/contests/hostile/jury/submissions/2:override", decision)
    entry = {"user": "contestant", "name": HOSTILE[:100]}
    participant = _posted(installation.admin, "/api/v1/contests/hostile/participants", entry)
    team = {"code": "hostile-team", "name": HOSTILE[:100]}
    _posted(installation.admin, "/api/v1/contests/hostile/participants", team)
    award = {"citation": HOSTILE[:200], "participant_ids": [participant["id"]]}
    installation.admin.put("/api/v1/contests/hostile/awards/hostile", json=award).raise_for_status()
    groups = {"groups": [{"code": "all", "name": HOSTILE[:60]}]}
    installation.admin.put("/api/v1/contests/hostile/groups", json=groups).raise_for_status()
    school = {"code": "school", "name": HOSTILE[:100], "formal_name": HOSTILE[:200]}
    _posted(installation.admin, "/api/v1/contests/hostile/organizations", school)
    _posted(installation.admin, "/api/v1/contests/hostile/invitations", {"note": HOSTILE[:200]})
    _posted(installation.admin, "/api/v1/contests/hostile/accounts:create", {})
    asked = _posted(installation.admin, "/api/v1/contests/hostile/clarifications", {"body": HOSTILE})
    material = "/api/v1/contests/hostile/materials/rules.pdf"
    installation.admin.put(material, params={"title": HOSTILE[:200]}, content=b"%PDF-1.4").raise_for_status()
    printed = {"content": HOSTILE * 20, "file_name": "hostile.txt"}
    _posted(installation.admin, "/api/v1/contests/hostile/prints", printed)
    _posted(installation.admin, "/api/v1/contests/hostile/announcements", {"body": HOSTILE})
    return participant, asked["id"]


def _create_rated_contest(installation: Installation) -> None:
    """A finalized contest in which two users were rated."""
    started = datetime.now(UTC) - timedelta(hours=1)
    body = {"slug": "rated", "title": HOSTILE[:200], "duration_sec": 7_200, "rated": True, "allows_virtual": True}
    _posted(installation.admin, "/api/v1/contests", body | {"starts_at": started.isoformat()})
    problems = {"problems": [{"problem": "sum"}]}
    installation.admin.put("/api/v1/contests/rated/problems", json=problems).raise_for_status()
    _posted(installation.admin, "/api/v1/contests/rated:publish", {})
    for name, source in (("contestant", SUM), ("setter", SAYS_IT)):
        with installation.client(name) as client:
            _posted(client, "/api/v1/contests/rated:register", {})
            solution = {"contest": "rated", "problem": "A", "language": "python", "source": source}
            submission_id = _posted(client, "/api/v1/submissions", solution)["submission_id"]
        installation.wait_until(f"/api/v1/submissions/{submission_id}", lambda it: it["finished_at"] is not None)
    ended = {"duration_sec": (datetime.now(UTC) - started).total_seconds()}
    installation.admin.patch("/api/v1/contests/rated", json=ended).raise_for_status()
    _posted(installation.admin, "/api/v1/contests/rated:finalize", {})
    installation.wait_until("/api/v1/ratings", lambda it: len(it["items"]) == 2)


def _create_team_contest(installation: Installation) -> None:
    """A contest of the next day, for teams and individuals who know its code."""
    starts = datetime.now(UTC) + timedelta(days=1)
    registration = {"registration": "code", "registration_code": "a code", "allows_teams": True}
    body = {"slug": "teams", "title": HOSTILE[:200], "duration_sec": 18_000, "starts_at": starts.isoformat()}
    _posted(installation.admin, "/api/v1/contests", body | registration)
    problems = {"problems": [{"problem": "sum"}]}
    installation.admin.put("/api/v1/contests/teams/problems", json=problems).raise_for_status()
    _posted(installation.admin, "/api/v1/contests/teams:publish", {})


def _posted(client: httpx.Client, path: str, body: dict[str, Any]) -> dict[str, Any]:
    answer = client.post(path, json=body)
    assert answer.is_success, answer.text
    found: dict[str, Any] = answer.json()
    return found
