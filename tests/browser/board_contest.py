"""Contests for the browser tests of scoreboards."""

from __future__ import annotations

import json
import time
from typing import Any, Final

from tests.browser.seed_data import SUM
from tests.support.installation import Installation

ROOT: Final = "/api/v1/contests"
WRONG: Final = "print(0)\n"
PEOPLE: Final = {"contestant": "Alpha", "setter": "Beta", "judge": "Gamma"}
"""Users of every installation, and how they are called on the scoreboards."""


class BoardContest:
    """A running contest with the problems A and B, made over the API."""

    def __init__(self, installation: Installation, slug: str, **settings: Any) -> None:
        self.installation, self.slug = installation, slug
        self.path = f"/contests/{slug}/scoreboard"
        body = {"slug": slug, "title": f"Contest {slug}", "duration_sec": 18_000} | settings
        self._request("POST", "", body)
        self._request("PUT", f"/{slug}/problems", {"problems": [{"problem": "sum"}, {"problem": "hostile"}]})
        self._started = time.time()
        self.act("start")
        self.act("publish")

    def _request(self, method: str, path: str, body: dict[str, Any] | None = None) -> Any:
        answer = self.installation.admin.request(method, f"{ROOT}{path}", json=body or {})
        assert answer.is_success, answer.text
        return answer.json() if answer.content else None

    def act(self, action: str, **fields: Any) -> None:
        """A command of the organiser."""
        self._request("POST", f"/{self.slug}:{action}", fields)

    def set(self, path: str, body: dict[str, Any]) -> Any:
        """Replace a part of the contest."""
        return self._request("PUT", f"/{self.slug}{path}", body)

    def change(self, **fields: Any) -> None:
        """Change settings."""
        self._request("PATCH", f"/{self.slug}", fields)

    def end(self) -> None:
        """Let the contest be over now; everything that was submitted counts."""
        self.change(duration_sec=time.time() - self._started)

    def get(self, path: str) -> Any:
        """Read as the organiser."""
        return self._request("GET", f"/{self.slug}{path}")

    def enter(self, user: str, name: str, **fields: Any) -> str:
        """Let a user take part; return the participant."""
        made: str = self._request("POST", f"/{self.slug}/participants", {"user": user, "name": name, **fields})["id"]
        return made

    def enter_people(self) -> dict[str, str]:
        """Let the three users take part; return their participants by name."""
        return {name: self.enter(user, name) for user, name in PEOPLE.items()}

    def grant(self, user: str, role: str) -> None:
        """Give a user a role in the contest."""
        self._request("POST", f"/{self.slug}/roles", {"user": user, "role": role})

    def enter_teams(self) -> dict[str, str]:
        """Let each of the three users take part as a team; return the participants by name."""
        made = {}
        for user, name in PEOPLE.items():
            entry = {"name": name, "code": f"{self.slug}-{user}", "members": [user]}
            made[name] = self._request("POST", f"/{self.slug}/participants", entry)["id"]
        return made

    def set_photo(self, participant_id: str, data: bytes) -> None:
        """Upload the photo of a team."""
        path = f"{ROOT}/{self.slug}/participants/{participant_id}/photo"
        self.installation.admin.put(path, content=data).raise_for_status()

    def import_teams(self, teams: int, organizations: int) -> None:
        """Let teams take part, in as many organisations and the groups North and South."""
        schools = [{"id": f"o{number}", "name": f"University {number}"} for number in range(organizations)]
        groups = [{"id": "north", "name": "North"}, {"id": "south", "name": "South"}]
        entries = [
            {
                "id": f"{self.slug}-{number}",
                "name": f"Team {number:03}",
                "organization_id": f"o{number % organizations}",
                "group_ids": ["north" if number % 2 else "south"],
            }
            for number in range(teams)
        ]
        documents = {"organizations.json": schools, "groups.json": groups, "teams.json": entries}
        files = [{"name": name, "text": json.dumps(document)} for name, document in documents.items()]
        self._request("POST", f"/{self.slug}/participants:import", {"files": files})

    def submit(self, user: str, label: str = "A", *, is_right: bool = True) -> str:
        """Submit and wait for the verdict; return the submission."""
        body = {"contest": self.slug, "problem": label, "language": "python3", "source": SUM if is_right else WRONG}
        with self.installation.client(user) as client:
            answer = client.post("/api/v1/submissions", json=body)
            assert answer.is_success, answer.text
            submission_id: str = answer.json()["submission_id"]
        self.installation.wait_until(f"/api/v1/submissions/{submission_id}", lambda it: it["finished_at"] is not None)
        return submission_id
