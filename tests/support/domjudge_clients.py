"""Clients that talk to a server as DOMjudge's ``submit`` and as BAPCtools do, with the HTTP library that these use.

They make the same requests in the same order, and are as strict with the responses: ids are texts, keys are there,
times are read by ``datetime.fromisoformat``.
"""

from __future__ import annotations

import base64
import io
import re
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import requests

_TIMEOUT_SEC = 120
_OLD_ISO = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{3}|\.\d{6})?[+-]\d\d:\d\d")
"""The times that ``fromisoformat`` reads in Python 3.7 to 3.10."""


class ClientFailure(Exception):
    """What a client prints before it exits."""


@dataclass
class SubmitProgram:
    """Submits and prints files. Credentials are read from ``~/.netrc`` or the file that NETRC names."""

    base_url: str
    contest: str = ""
    calls: list[str] = field(default_factory=list)

    def submit(self, *paths: Path, entry_point: str = "") -> dict[str, Any]:
        """Submit files; problem and language come from the name of the first one."""
        contest = self._contest()
        if not contest.get("allow_submit", True):
            raise ClientFailure("submissions are disabled")
        languages = self._languages(contest["id"])
        problems = self._problems(contest["id"])
        stem, _, extension = paths[0].name.rpartition(".")
        language = next((item for item in languages if extension.lower() in item["all"]), None)
        problem = next((item for item in problems if stem.lower() in _names(item)), None)
        if language is None or problem is None:
            raise ClientFailure("no known language or problem")
        if not entry_point and language["entry_point_required"]:
            entry_point = {"Java": stem, "Kotlin": f"{stem.capitalize()}Kt", "Python 3": paths[0].name}[
                language["name"]
            ]
        data = {"problem": problem["id"], "language": language["id"]}
        if entry_point:
            data["entry_point"] = entry_point
        with ExitStack() as opened:
            files = [("code[]", opened.enter_context(path.open("rb"))) for path in paths]
            made = self._post(f"contests/{contest['id']}/submissions", data=data, files=files)
        assert isinstance(made, dict)
        assert isinstance(made["id"], str)
        assert _OLD_ISO.fullmatch(made["time"]), made["time"]
        return made

    def print_file(self, path: Path) -> dict[str, Any]:
        """Send a file to the printer."""
        contest = self._contest()
        languages = self._languages(contest["id"])
        self._problems(contest["id"])
        extension = path.name.rpartition(".")[2].lower()
        data: dict[str, Any] = {"original_name": str(path), "file_contents": base64.b64encode(path.read_bytes())}
        if language := next((item for item in languages if extension in item["all"]), None):
            data["language"] = language["name"]
        result = self._post("printing/team", data=data)
        assert isinstance(result, dict)
        assert result["success"], result["output"]
        return result

    def _contest(self) -> dict[str, Any]:
        found = self._get("contests")
        assert isinstance(found, list)
        assert all(item["id"] and item["shortname"] for item in found)
        if not self.contest and len(found) != 1:
            raise ClientFailure(f"several contests: {', '.join(item['shortname'] for item in found)}")
        wanted = [item for item in found if self.contest.lower() in ("", item["id"].lower(), item["shortname"].lower())]
        if not wanted:
            raise ClientFailure("no such contest")
        return dict(wanted[0])

    def _languages(self, contest_id: str) -> list[dict[str, Any]]:
        found = self._get(f"contests/{contest_id}/languages")
        assert isinstance(found, list)
        for item in found:
            assert item["id"]
            assert item["extensions"]
            assert isinstance(item["extensions"], list)
            assert item["entry_point_required"] in (True, False, None)
            item["all"] = {item["id"].lower(), *(extension.lower() for extension in item["extensions"])}
        return found

    def _problems(self, contest_id: str) -> list[dict[str, Any]]:
        found = self._get(f"contests/{contest_id}/problems")
        assert isinstance(found, list)
        assert all(item["id"] and item["label"] for item in found)
        return found

    def _get(self, name: str) -> Any:
        self.calls.append(f"GET {name}")
        return _read(requests.get(f"{self.base_url}/api/{name}", headers=_AGENT, timeout=_TIMEOUT_SEC))

    def _post(self, name: str, **sent: Any) -> Any:
        self.calls.append(f"POST {name}")
        url = f"{self.base_url}/api/{name}"
        return _read(requests.post(url, headers=_AGENT, timeout=_TIMEOUT_SEC, **sent))


_AGENT = {"user-agent": f"domjudge-submit-client ({requests.utils.default_user_agent()})"}


def _names(problem: Mapping[str, Any]) -> tuple[str, str]:
    return problem["id"].lower(), problem["label"].lower()


def _read(response: requests.Response) -> Any:
    if response.status_code >= 300:
        shown = response.json()  # the client prints errors that are JSON
        raise ClientFailure(f"code {response.status_code}: {shown['message']}")
    return response.json()


@dataclass
class ExportProgram:
    """Exports a contest to a server, and reads its submissions, as BAPCtools does under ``/api/v4``."""

    base_url: str
    username: str
    password: str = field(repr=False)

    def call(self, method: str, path: str, **sent: Any) -> requests.Response:
        """One request with HTTP Basic authentication."""
        auth = requests.auth.HTTPBasicAuth(self.username, self.password)
        return requests.request(method, f"{self.base_url}/api/v4{path}", auth=auth, timeout=_TIMEOUT_SEC, **sent)

    def get(self, path: str) -> Any:
        """A document."""
        response = self.call("GET", path)
        response.raise_for_status()
        return response.json()

    def create_contest(self, text: str) -> str:
        """Upload ``contest.yaml``; return the id of the contest."""
        files = {"yaml": ("contest.yaml", text, "application/x-yaml")}
        made = self._checked(self.call("POST", "/contests", files=files))
        assert isinstance(made, str)
        return made

    def export(self, contest: str, pdf: bytes, problems_yaml: str, packages: Mapping[str, bytes]) -> list[list[str]]:
        """Upload the problem set, ``problems.yaml`` if the contest has no problems, and the packages; the messages."""
        assert any(item["id"] == contest for item in self.get("/contests"))
        files = {"problemset": ("contest.pdf", io.BytesIO(pdf), "application/pdf")}
        self.call("POST", f"/contests/{contest}/problemset", files=files).raise_for_status()
        if not self.get(f"/contests/{contest}/problems"):
            data = {"data": ("problems.yaml", problems_yaml, "application/x-yaml")}
            assert isinstance(
                self._checked(self.call("POST", f"/contests/{contest}/problems/add-data", files=data)), list
            )
        known = self.get(f"/contests/{contest}/problems")
        assert any(user["username"] == self.username and user["team"] for user in self.get("/users"))
        return [self.upload(contest, name, data, known) for name, data in packages.items()]

    def upload(self, contest: str, name: str, data: bytes, known: Sequence[Mapping[str, Any]] = ()) -> list[str]:
        """Upload a package; ``known`` are the problems of the contest."""
        ids = [item["id"] for item in known if name in (item.get("short_name"), item.get("id"), item.get("externalid"))]
        file = io.BytesIO(data)
        file.name = f"{name}.zip"
        form = {"problem": ids[0]} if ids else None
        response = self.call("POST", f"/contests/{contest}/problems", data=form, files=[("zip", file)])
        found = self._checked(response)
        "\n".join(found["messages"])
        return list(found["messages"])

    def read_activity(self, contest: str) -> dict[str, dict[str, Any]]:
        """The submissions with their valid judgements, and checks of everything that statistics need."""
        root = f"/contests/{contest}/"
        about = self.get(root)
        for key in ("scoreboard_freeze_duration", "duration"):
            hours, minutes, seconds = (about.get(key) or "0:0:0").split(":")
            assert int(hours) * 60 + int(minutes) + float(seconds) / 60 >= 0
        names = ("problems", "submissions", "teams?public=1", "languages", "judgement-types")
        problems, submissions, teams, languages, types = (
            {item["id"]: item for item in self.get(root + name)} for name in names
        )
        assert types.keys() >= {"AC", "WA", "TLE", "RTE"}
        for judgement in self.get(f"{root}judgements"):
            if judgement["valid"] and judgement["submission_id"] in submissions:
                submissions[judgement["submission_id"]]["judgement"] = judgement
        for item in submissions.values():
            assert len(item["contest_time"].split(":")) == 3
            assert item["problem_id"] in problems
            assert item["language_id"] in languages
            assert item["team_id"] in teams
            assert item["judgement"].get("judgement_type_id") in types, item
            assert item["judgement"]["max_run_time"] >= 0
        return submissions

    def download(self, contest: str) -> dict[str, bytes]:
        """The sources of all submissions with one file, by problem, team, number and extension."""
        found = {}
        for item in self.get(f"/contests/{contest}/submissions"):
            files = self.get(f"/contests/{contest}/submissions/{int(item['id'])}/source-code")
            if len(files) == 1:
                extension = files[0]["filename"].split(".")[-1]
                found[f"{item['problem_id']}/{item['id']}.{extension}"] = base64.b64decode(files[0]["source"])
        for name in ("teams", "organizations", "problems", "scoreboard", "clarifications"):
            self.get(f"/contests/{contest}/{name}")
        return found

    def _checked(self, response: requests.Response) -> Any:
        if response.status_code == 400:
            raise ClientFailure(response.json()["message"])
        response.raise_for_status()
        return response.json()
