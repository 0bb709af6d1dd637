"""A contest for the screenshots: twelve teams, five hours of work, a frozen scoreboard."""

from __future__ import annotations

import json
import sqlite3
import time
from contextlib import ExitStack, closing
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any, Final

import httpx

from tests.support.installation import Installation
from tests.support.problem_packages import EXAMPLES

SLUG: Final = "spring"
API: Final = f"/api/v1/contests/{SLUG}"
NOW_MIN: Final = 281
"""Minutes since the start when the pictures are taken; the scoreboard is frozen after 240."""
_MINUTE_US: Final = 60_000_000

PROBLEMS: Final = {
    "multiples": ("#dc2626", "red", "submissions/accepted/formula.py", "submissions/wrong_answer/product.py"),
    "shout": ("#2563eb", "blue", "submissions/accepted/swap.py", "submissions/wrong_answer/shouts_only.py"),
    "backwards": ("#16a34a", "green", "solutions/right.py", "solutions/letters.py"),
    "smallroot": ("#facc15", "yellow", "submissions/accepted/stable.py", "submissions/wrong_answer/textbook.py"),
    "dressing": (
        "#9333ea",
        "purple",
        "submissions/accepted/from_the_end.py",
        "submissions/wrong_answer/sorts_by_waits.py",
    ),
    "postcards": (
        "#f97316",
        "orange",
        "submissions/accepted/bits.py",
        "submissions/wrong_answer/trusts_the_order.py",
    ),
    "guess": ("#f9a8d4", "pink", "submissions/accepted/halving.py", "submissions/wrong_answer/gives_up.py"),
}
"""Colour, its name, an accepted and a wrong solution."""

_ORDER: Final = "BEADGCF"
"""Labels from easy to hard."""

TEAMS: Final = {
    "Null Pointers": "North University",
    "Off By One": "South Institute",
    "Segmentation Fault": "East College",
    "Binary Beavers": "North University",
    "Greedy Is Enough": "West Academy",
    "Stack Underflow": "South Institute",
    "Lazy Propagation": "Lake University",
    "Three Pointers": "East College",
    "Almost Linear": "Lake University",
    "Works On My Machine": "West Academy",
    "Endless Loop": "Hill University",
    "Hello World": "Harbour Institute",
}
OWN_USER: Final = "contestant"
OWN_TEAM: Final = "Segmentation Fault"
_DESCRIPTION: Final = """The programming contest of the spring term. **Teams of three**, one computer, five hours.

- The problems are ordered at random. Read all of them.
- Use *Clarifications* for questions about a statement.
- Printed material is allowed; other devices are not.
"""


@dataclass(frozen=True, order=True)
class Attempt:
    """One submission."""

    minute: int
    team: str
    label: str
    file: Path


def plan(seed: int = 39) -> list[Attempt]:
    """What each team submits and when; better teams are faster and make fewer mistakes."""
    random, attempts = Random(seed), []  # noqa: S311  # no secret
    files = {chr(ord("A") + index): (slug, *item[2:]) for index, (slug, item) in enumerate(PROBLEMS.items())}
    for place, team in enumerate(TEAMS):
        minute, skill = 6.0, 1 - place / (len(TEAMS) + 2)
        order, swapped = list(_ORDER), random.randrange(len(_ORDER) - 1)
        order[swapped : swapped + 2] = reversed(order[swapped : swapped + 2])
        for index, label in enumerate(order):
            slug, right, wrong = files[label]
            minute += random.uniform(0.7, 1.3) * (14 + 13 * index) / (0.45 + skill)
            gives_up = False
            while minute < NOW_MIN and not gives_up and random.random() > 0.55 + 0.4 * skill:
                attempts.append(Attempt(int(minute), team, label, EXAMPLES / slug / wrong))
                minute += random.uniform(4, 16)
                gives_up = random.random() < 0.25
            if minute < NOW_MIN and not gives_up:
                attempts.append(Attempt(int(minute), team, label, EXAMPLES / slug / right))
    return sorted(attempts)


def seed_contest(installation: Installation) -> None:
    """Create the contest with teams, submissions and clarifications; ``OWN_USER`` exists and is in ``OWN_TEAM``."""
    admin = installation.admin
    starts_at = datetime.now(UTC) - timedelta(minutes=NOW_MIN)
    settings = {
        "slug": SLUG,
        "title": "Spring Contest",
        "description": _DESCRIPTION,
        "starts_at": starts_at.isoformat().replace("+00:00", "Z"),
        "duration_sec": 18_000,
        "freeze_after_sec": 14_400,
        "allows_individuals": False,
        "balloons_enabled": True,
        "clarification_categories": ["Statement", "Technical"],
        "awards_cfg": {"gold": 2, "silver": 2, "bronze": 2},
        "registration": "list",
    }
    _post(admin, "/api/v1/contests", settings)
    problems = [{"problem": slug, "rgb": item[0], "color": item[1]} for slug, item in PROBLEMS.items()]
    admin.put(f"{API}/problems", json={"problems": problems}).raise_for_status()
    _post(admin, f"{API}:publish")
    _post(admin, f"{API}/participants:import", {"files": _team_files()})
    attempts = plan()
    with ExitStack() as stack:
        clients = _clients(installation, stack)
        for attempt in attempts:
            source = attempt.file.read_text()
            body = {"contest": SLUG, "problem": attempt.label, "language": "python3", "source": source}
            _post(clients[attempt.team], "/api/v1/submissions", body)
        _ask(admin, clients)
    _wait(admin)
    _set_times(installation.folder / "adjudge.db", attempts, int(starts_at.timestamp() * 1_000_000))
    for freeze_sec in (14_401, 14_400):  # folds the scoreboard again
        admin.patch(API, json={"freeze_after_sec": freeze_sec}).raise_for_status()


def _clients(installation: Installation, stack: ExitStack) -> dict[str, httpx.Client]:
    made = _post(installation.admin, f"{API}/accounts:create-tokens")["items"]
    found = {OWN_TEAM: stack.enter_context(installation.client(OWN_USER))}
    for item in made:
        client = httpx.Client(base_url=installation.url, timeout=120)
        client.headers["Authorization"] = f"Bearer {item['secret']}"
        found[next(team for team in TEAMS if _user_of(team) == item["username"])] = stack.enter_context(client)
    return found


def _user_of(team: str) -> str:
    return OWN_USER if team == OWN_TEAM else team.lower().replace(" ", "-")


def _team_files() -> list[dict[str, str]]:
    organizations = sorted(set(TEAMS.values()))
    ids = {name: f"org{index}" for index, name in enumerate(organizations)}
    files: dict[str, list[dict[str, str]]] = {
        "organizations.json": [{"id": ids[name], "name": name, "formal_name": name} for name in organizations],
        "teams.json": [
            {"id": _user_of(team), "name": team, "organization_id": ids[place]} for team, place in TEAMS.items()
        ],
        "accounts.json": [
            {"id": _user_of(team), "username": _user_of(team), "type": "team", "team_id": _user_of(team)}
            for team in TEAMS
        ],
    }
    return [{"name": name, "text": json.dumps(content)} for name, content in files.items()]


def _ask(admin: httpx.Client, clients: dict[str, httpx.Client]) -> None:
    """Questions, answers and an announcement."""
    asked = [
        ("Off By One", "B", "Statement", "Do digits change, too?", "No, only letters.", "participant"),
        ("Three Pointers", "E", "Statement", "May a wait be zero?", "Yes. The statement says: not negative.", "all"),
        ("Hello World", "", "Technical", "The printer in room 2 has no paper.", "", ""),
        ("Lazy Propagation", "G", "Statement", "How many guesses are allowed?", "", ""),
    ]
    for team, label, category, question, answer, audience in asked:
        body = {"body": question, "problem": label, "category": category}
        made = _post(clients[team], f"{API}/clarifications", body)
        if answer:
            reply = {"body": answer, "audience": audience}
            _post(admin, f"{API}/clarifications/{made['id']}:answer", reply)
        elif category == "Technical":
            _post(admin, f"{API}/clarifications/{made['id']}:claim")
    _post(admin, f"{API}/announcements", {"body": "Snacks are in front of the hall.", "audience": "all"})


def _wait(admin: httpx.Client) -> None:
    """Wait until all submissions are judged."""
    while any("submission" in text for text in admin.get(f"{API}/blockers").raise_for_status().json()["blockers"]):
        time.sleep(0.5)


def _set_times(database: Path, attempts: list[Attempt], start_us: int) -> None:
    """Spread the submissions, which were sent within a minute, over the hours of the contest."""
    rows = [
        (start_us + attempt.minute * _MINUTE_US + number * 1_000, number) for number, attempt in enumerate(attempts, 1)
    ]
    with closing(sqlite3.connect(database, timeout=60)) as connection, connection:
        connection.executemany("UPDATE contest_submissions SET received_at = ? WHERE number = ?", rows)


def _post(client: httpx.Client, path: str, body: dict[str, Any] | None = None) -> Any:
    answer = client.post(path, json=body or {})
    if not answer.is_success:
        raise RuntimeError(f"{path}: {answer.text}")
    return answer.json() if answer.content else None
