"""A client of the Contest API that knows a contest from its event feed alone, and computes the scoreboard from it."""

from __future__ import annotations

import json
from collections import defaultdict
from dataclasses import dataclass, field
from typing import Any, Final

MINUTE_MS: Final = 60_000
MAIN_GROUP: Final = "adjudge-main-scoreboard"
Object = dict[str, Any]


@dataclass
class FeedConsumer:
    """The objects that the feed has sent, by type and id, and the last token."""

    objects: defaultdict[str, dict[str, Object]] = field(default_factory=lambda: defaultdict(dict))
    token: str | None = None
    tokens: list[str] = field(default_factory=list)
    """All tokens, in their order."""
    types: list[str] = field(default_factory=list)
    """The types of all events, in their order."""

    def read(self, text: str) -> None:
        """Apply lines; empty ones keep the connection alive."""
        for line in text.splitlines():
            if line:
                self._apply(json.loads(line))

    def _apply(self, event: Object) -> None:
        assert event.keys() == {"token", "type", "id", "data"}
        kind, data = event["type"], event["data"]
        assert (event["id"] is None) == (kind in ("contest", "state"))
        self.token = event["token"]
        self.tokens.append(event["token"])
        self.types.append(kind)
        if data is None:
            self.objects[kind].pop(event["id"], None)
            return
        assert event["id"] in (None, data.get("id"))
        self.objects[kind][event["id"] or ""] = data

    @property
    def contest(self) -> Object:
        return self.objects["contest"][""]

    @property
    def state(self) -> Object:
        return self.objects["state"][""]

    def check_references(self) -> None:
        """Everything that objects refer to was sent."""
        for name, kind in {
            "team_id": "teams",
            "problem_id": "problems",
            "submission_id": "submissions",
            "judgement_id": "judgements",
            "judgement_type_id": "judgement-types",
            "organization_id": "organizations",
        }.items():
            for collection, items in self.objects.items():
                for item in items.values():
                    value = item.get(name)
                    assert value is None or value in self.objects[kind], (collection, item, name)

    def scoreboard(self) -> list[Object]:
        """The rows of an ICPC scoreboard, by the rules of the CCS, with times in minutes."""
        rows = [self._row(team) for team in self.objects["teams"].values() if self._is_ranked(team)]
        names = {team["id"]: team["name"] for team in self.objects["teams"].values()}
        rows.sort(key=lambda row: (_key(row), names[row["team_id"]]))
        for index, row in enumerate(rows):
            is_tie = index > 0 and _key(row) == _key(rows[index - 1])
            row["rank"] = rows[index - 1]["rank"] if is_tie else index + 1
        return rows

    def _is_ranked(self, team: Object) -> bool:
        main = self.contest.get("main_scoreboard_group_id")
        return not team.get("hidden", False) and (main is None or main in team["group_ids"])

    def _row(self, team: Object) -> Object:
        cells = [
            self._cell(team["id"], problem["id"])
            for problem in sorted(self.objects["problems"].values(), key=lambda item: item["ordinal"])
        ]
        solved = [cell for cell in cells if cell["solved"]]
        penalty = self._penalty_minutes()
        total = sum(cell["time"] + penalty * cell["wrong"] for cell in solved)
        last = max((cell["time"] for cell in solved), default=0)
        return {"team_id": team["id"], "num_solved": len(solved), "total_time": total, "last": last, "cells": cells}

    def _penalty_minutes(self) -> int:
        value = self.contest["penalty_time"]
        return value if isinstance(value, int) else reltime_ms(value) // MINUTE_MS

    def _cell(self, team_id: str, problem_id: str) -> Object:
        own = [
            item
            for item in self.objects["submissions"].values()
            if (item["team_id"], item["problem_id"]) == (team_id, problem_id)
            and 0 <= reltime_ms(item["contest_time"]) < reltime_ms(self.contest["duration"])
        ]
        own.sort(key=lambda item: (reltime_ms(item["contest_time"]), int(item["id"])))
        types, current = self.objects["judgement-types"], self._current_judgements()
        cell: Object = {"problem_id": problem_id, "num_judged": 0, "num_pending": 0, "solved": False, "wrong": 0}
        for item in own:
            kind = types.get(current.get(item["id"], ""))
            if kind is None or kind["id"] == "JE":
                cell["num_pending"] += 1
            elif not cell["solved"] and (kind["solved"] or kind["penalty"]):
                cell["num_judged"] += 1
                cell["solved"] = kind["solved"]
                cell["wrong"] += not kind["solved"]
                cell["time"] = reltime_ms(item["contest_time"]) // MINUTE_MS
        return cell

    def _current_judgements(self) -> dict[str, str]:
        """Submission → type of its judgement; a running one has none."""
        return {
            item["submission_id"]: item["judgement_type_id"]
            for item in self.objects["judgements"].values()
            if item.get("current", True) and item.get("judgement_type_id")
        }


def _key(row: Object) -> tuple[int, int, int]:
    return -row["num_solved"], row["total_time"], row["last"]


def reltime_ms(text: str) -> int:
    """A relative time in milliseconds."""
    sign, rest = (-1, text[1:]) if text.startswith("-") else (1, text)
    hours, minutes, seconds = rest.split(":")
    return sign * round((int(hours) * 3600 + int(minutes) * 60 + float(seconds)) * 1000)


def expected_rows(document: Object) -> list[Object]:
    """The rows of the scoreboard endpoint in the same form."""
    return [
        {
            "rank": row["rank"],
            "team_id": row["team_id"],
            "num_solved": row["score"]["num_solved"],
            "total_time": _minutes(row["score"]["total_time"]),
            "cells": [
                (
                    cell["problem_id"],
                    cell["num_judged"],
                    cell["num_pending"],
                    cell["solved"],
                    _minutes(cell.get("time")),
                )
                for cell in row["problems"]
            ],
        }
        for row in document["rows"]
    ]


def computed_rows(consumer: FeedConsumer) -> list[Object]:
    """The rows of a consumer in the same form."""
    return [
        {
            "rank": row["rank"],
            "team_id": row["team_id"],
            "num_solved": row["num_solved"],
            "total_time": row["total_time"],
            "cells": [
                (
                    cell["problem_id"],
                    cell["num_judged"],
                    cell["num_pending"],
                    cell["solved"],
                    cell["time"] if cell["solved"] else None,
                )
                for cell in row["cells"]
            ],
        }
        for row in consumer.scoreboard()
    ]


def _minutes(value: int | str | None) -> int | None:
    return reltime_ms(value) // MINUTE_MS if isinstance(value, str) else value
