"""``adjudge contest submissions|verify|override|ignore|official|penalty|judging``: the work of a contest's jury."""

from __future__ import annotations

from typing import Any, Final

import click
from rich.markup import escape
from rich.table import Table

from adjudge.cli.connection import open_client
from adjudge.cli.contest_output import print_json
from adjudge.cli.options import json_option, limit_option, server_option
from adjudge.cli.output import make_console
from adjudge.domain.verdict import Verdict
from adjudge.schema.contest_submissions import ContestSubmissionRead

_contest = click.argument("contest")
_number = click.argument("number", type=int)
_reason = click.option("--reason", required=True, help="Kept in the audit log.")
_undo = click.option("--undo", is_flag=True, help="Take the decision back.")


@click.command()
@_contest
@click.option("--problem", help="Label of the problem.")
@click.option("--participant", help="Code of the participant.")
@click.option("--language", help="Language of the submissions.")
@click.option("--verdict", type=click.Choice([str(item) for item in Verdict]), help="The verdict that counts.")
@click.option("--unverified", is_flag=True, help="Only those that wait for verification.")
@click.option("--waiting", is_flag=True, help="Only those without a verdict.")
@click.option("--ignored", is_flag=True, help="Only those that are left out of the scoreboard.")
@click.option("--late", is_flag=True, help="Only those outside the participant's time.")
@limit_option(default=50, maximum=100)
@json_option
@server_option
def submissions(contest: str, limit: int, as_json: bool, server: str | None, **wanted: Any) -> None:
    """List the submissions of a contest, newest first, for its jury."""
    asked = {name: value for name, value in wanted.items() if value}
    with open_client(server) as client:
        found = client.jury_submissions(contest, limit=limit, **asked).items
    if as_json:
        print_json(found)
        return
    table = Table("number", "participant", "problem", "language", "verdict", "notes")
    for item in found:
        verdict = item.override_verdict or item.verdict or item.status
        table.add_row(
            str(item.number), escape(item.participant), item.problem, item.language, str(verdict), _notes(item)
        )
    make_console().print(table)


@click.command()
@_contest
@_number
@click.argument("verdict", type=click.Choice([*Verdict, "none"]))
@json_option
@server_option
def verify(contest: str, number: int, verdict: str, as_json: bool, server: str | None) -> None:
    """Confirm the verdict that you saw of a submission, so that it counts; "none" takes the confirmation back.

    It is refused if the submission has another verdict since.
    """
    with open_client(server) as client:
        seen = None if verdict == "none" else verdict
        _print(client.jury_verify(contest, number, verdict=seen), as_json=as_json)


@click.command()
@_contest
@_number
@_undo
@_reason
@json_option
@server_option
def ignore(contest: str, number: int, *, undo: bool, reason: str, as_json: bool, server: str | None) -> None:
    """Leave a submission out of the scoreboard."""
    with open_client(server) as client:
        _print(client.jury_ignore(contest, number, reason=reason, is_ignored=not undo), as_json=as_json)


@click.command()
@_contest
@_number
@_undo
@_reason
@json_option
@server_option
def official(contest: str, number: int, *, undo: bool, reason: str, as_json: bool, server: str | None) -> None:
    """Count a submission that was received outside the participant's time."""
    with open_client(server) as client:
        _print(client.jury_make_official(contest, number, reason=reason, is_official=not undo), as_json=as_json)


@click.command()
@_contest
@_number
@click.argument("verdict", type=click.Choice([*(str(item) for item in Verdict), "none"]))
@click.option("--score", type=float, help="Points, in formats with scores.")
@_reason
@json_option
@server_option
def override(
    contest: str, number: int, verdict: str, *, score: float | None, reason: str, as_json: bool, server: str | None
) -> None:
    """Replace the verdict of the judge; none takes that back."""
    wanted = None if verdict == "none" else verdict
    with open_client(server) as client:
        changed = client.jury_override(contest, number, verdict=wanted, reason=reason, score=score)
    _print(changed, as_json=as_json)


@click.command()
@_contest
@click.argument("participant")
@click.argument("minutes", type=float)
@_reason
@server_option
def penalty(contest: str, participant: str, minutes: float, reason: str, server: str | None) -> None:
    """Set the penalty in minutes that the jury adds to a participant; 0 removes it."""
    with open_client(server) as client:
        made = client.jury_adjust_penalty(contest, participant, penalty_sec=round(minutes * 60), reason=reason)
    click.echo(f"{made.participant}: {made.penalty_sec} seconds are added")


@click.command()
@_contest
@click.argument("label")
@click.argument("action", type=click.Choice(["pause", "resume"]))
@click.option("--reason", default="", help="Kept in the audit log.")
@server_option
def judging(contest: str, label: str, action: str, reason: str, server: str | None) -> None:
    """Pause or resume the judging of a problem; submissions wait meanwhile."""
    with open_client(server) as client:
        client.jury_pause_judging(contest, label, is_paused=action == "pause", reason=reason)
    click.echo(f"{contest} {label}: judging {action}d")


def _print(item: ContestSubmissionRead, *, as_json: bool) -> None:
    if as_json:
        print_json(item)
        return
    verdict = item.override_verdict or item.verdict or item.status
    notes = _notes(item)
    click.echo(f"{item.number}: {verdict}{f' ({notes})' if notes else ''}")


def _notes(item: ContestSubmissionRead) -> str:
    found = {
        "overridden": item.override_verdict is not None,
        "verified": item.verified_at is not None,
        "ignored": item.ignored_at is not None,
        "official": item.official,
        "late": item.is_late,
    }
    return ", ".join(name for name, is_so in found.items() if is_so)


JURY_COMMANDS: Final = (submissions, verify, ignore, official, override, penalty, judging)
