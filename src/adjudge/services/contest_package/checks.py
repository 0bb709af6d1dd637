"""Checks of a contest package before anything is written: permissions, values and references. All are findings."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from adjudge.contests.clock import RemovedInterval, check_new_interval
from adjudge.domain.errors import AdjudgeError
from adjudge.domain.permissions import Permission, parse_user_name
from adjudge.domain.states import ContestState
from adjudge.packages.contest_package.model import EXTENSION_FILE, ClarificationExtension, Extension
from adjudge.packages.findings import Findings
from adjudge.packages.team_files import ImportedAccount
from adjudge.services.clarifications import MAX_BODY
from adjudge.services.contest_materials import MAX_FILES, checked_name, checked_title
from adjudge.services.contest_package.files import OpenedPackage
from adjudge.services.contest_package.write import contest_settings
from adjudge.services.contests import ContestService, parse_slug
from adjudge.services.passwords import validate_new_password
from adjudge.services.team_import import is_network
from adjudge.services.viewer import Viewer
from adjudge.store.contests.activity_models import CLARIFICATION_AUDIENCES

_MAX_GIVEN_PASSWORDS: Final = 200
"""Passwords of a file are hashed with the ordinary parameters: 200 take some 15 seconds of one request."""


def check_package(
    viewer: Viewer, opened: OpenedPackage, slug: str, contests: ContestService, password_min_length: int
) -> None:
    """Report everything that is wrong with a package, apart from conflicts with what the database has."""
    package, findings = opened.package, opened.package.findings
    extension = package.extension or Extension(1)
    _collect(findings, "contest.json", lambda: parse_slug(slug))
    _collect(findings, "contest.json", lambda: contests.checked(contest_settings(package)))
    if extension.contest.registration == "code":
        findings.warning(EXTENSION_FILE, "contest.registration: codes are not exported.", "Set a new one.")
    if (package.has_submissions or extension.clarifications) and not viewer.can(Permission.CONTEST_ADMIN):
        fix = "Ask one, or export the contest without submissions."
        findings.error("", "only administrators may import submissions and clarifications.", fix)
    _check_people(opened, password_min_length)
    if package.extension is not None:
        _ExtensionChecker(opened, extension).check()


def _collect(findings: Findings, path: str, check: Callable[[], object], line: int = 0) -> None:
    try:
        check()
    except AdjudgeError as refused:
        findings.error(path, refused.message, line=line)


def _check_people(opened: OpenedPackage, password_min_length: int) -> None:
    people, findings = opened.package.people, opened.package.findings
    organizations, groups = {item.code for item in people.organizations}, {item.code for item in people.groups}
    for team in people.teams:
        if team.organization is not None and team.organization not in organizations:
            message = f"organization_id: there is no organisation {team.organization[:36]!r}."
            findings.error(team.path, message, "Add it to the organizations file.", team.line)
        for group in sorted(set(team.groups) - groups):
            message = f"group_ids: there is no group {group[:36]!r}."
            findings.error(team.path, message, "Add it to the groups file.", team.line)
    given = [item for item in people.accounts if item.password is not None]
    if len(given) > _MAX_GIVEN_PASSWORDS:
        message = f"password: more than {_MAX_GIVEN_PASSWORDS} accounts have one."
        findings.error(given[0].path, message, "Leave passwords out and set them after the import.")
    codes = {item.code for item in people.teams}
    for account in people.accounts:
        _check_account(account, codes, findings, password_min_length)


def _check_account(item: ImportedAccount, codes: set[str], findings: Findings, min_length: int) -> None:
    _collect(findings, item.path, lambda: parse_user_name(item.code), item.line)
    password = item.password
    if password is not None:
        check = validate_new_password
        _collect(findings, item.path, lambda: check(password, name=item.code, min_length=min_length), item.line)
    if item.ip is not None and not is_network(item.ip):
        findings.error(item.path, f"ip: {item.ip[:64]!r} is not an address or a network.", line=item.line)
    if item.team is not None and item.team not in codes:
        findings.error(item.path, f"team_id: there is no team {item.team[:36]!r}.", line=item.line)


class _ExtensionChecker:
    """Checks that the extension refers only to what the package has."""

    def __init__(self, opened: OpenedPackage, extension: Extension) -> None:
        people = opened.package.people
        self._findings, self._extension = opened.package.findings, extension
        self._problems = {item.id for item in opened.package.problems}
        self._teams = {item.code for item in people.teams}
        self._groups = {item.code for item in people.groups}
        self._users = {item.code for item in people.accounts}

    def check(self) -> None:
        extension = self._extension
        if (extension.contest.finalized_at is not None) != (extension.contest.state is ContestState.FINALIZED):
            self._error("contest.finalized_at", "must be given exactly for a finalized contest.")
        if extension.contest.end_of_updates_at is not None and extension.contest.finalized_at is None:
            self._error("contest.end_of_updates_at", "needs a finalized contest.")
        self._unique("participants", (item.id for item in extension.participants))
        self._unique("problems", (item.id for item in extension.problems))
        self._unique("groups", (item.id for item in extension.groups))
        self._unique("accounts", (item.username for item in extension.accounts))
        self._unique("awards", (item.id for item in extension.awards))
        self._unique("materials", (item.name for item in extension.materials))
        self._unique("canned_answers", (item.title for item in extension.canned_answers))
        self._check_participants()
        for index, account in enumerate(extension.accounts):
            self._known(f"accounts[{index}].username", account.username, self._users, "account")
            for number, text in enumerate(account.address_ranges or ()):
                if not is_network(text):
                    self._error(f"accounts[{index}].address_ranges[{number}]", f"{text[:64]!r} is not a network.")
        self._check_intervals()
        self._check_clarifications()
        for index, award in enumerate(extension.awards):
            for team in award.teams:
                self._known(f"awards[{index}].teams", team, self._teams, "team")
        self._check_materials()

    def _check_participants(self) -> None:
        known = {item.id: item for item in self._extension.participants}
        for index, item in enumerate(self._extension.participants):
            path = f"participants[{index}]"
            for name in (*item.members, *(() if item.user is None else (item.user,))):
                self._known(f"{path}.members", name, self._users, "account")
            if item.team is not None and (item.team not in known or item.user is not None or item.team == item.id):
                self._error(f"{path}.team", f"{item.team[:36]!r} is not another participant of the package.")
            if item.delay_us < 0 or item.extra_us < 0 or item.run_no < 0:
                self._error(path, "delay_us, extra_us and run_no must not be negative.")

    def _check_intervals(self) -> None:
        counted: list[RemovedInterval] = []
        for index, item in enumerate(self._extension.removed_intervals):
            path = f"removed_intervals[{index}]"
            if item.to_at is not None and item.to_at <= item.from_at:
                self._error(f"{path}.to_at", "must be after from_at.")
            elif item.undone_at is None:
                new = RemovedInterval(item.from_at, item.to_at)
                before = len(self._findings.items)
                _collect(self._findings, f"{EXTENSION_FILE}: {path}", lambda new=new: check_new_interval(counted, new))  # type: ignore[misc]  # bound in each pass
                if len(self._findings.items) == before:
                    counted.append(new)

    def _check_clarifications(self) -> None:
        items = self._extension.clarifications
        earlier: set[int] = set()
        for index, item in enumerate(items):
            path = f"clarifications[{index}]"
            self._check_clarification(path, item, earlier)
            self._check_names(path, item)
            earlier.add(item.number)

    def _check_clarification(self, path: str, item: ClarificationExtension, earlier: set[int]) -> None:
        if item.number <= max(earlier, default=0):
            self._error(f"{path}.number", "must increase from 1.")
        if item.audience not in CLARIFICATION_AUDIENCES:
            self._error(f"{path}.audience", f"must be one of {', '.join(CLARIFICATION_AUDIENCES)}.")
        if (item.audience == "participant") != (item.to_team is not None):
            self._error(f"{path}.to_team", "must be given exactly for the audience participant.")
        if item.from_team is not None and item.audience != "jury":
            self._error(f"{path}.audience", "must be jury for a question of a team.")
        if not 0 < len(item.body) <= MAX_BODY:
            self._error(f"{path}.body", f"expected 1 to {MAX_BODY} characters.")
        if item.reply_to is not None and item.reply_to not in earlier:
            self._error(f"{path}.reply_to", f"there is no earlier clarification {item.reply_to}.")

    def _check_names(self, path: str, item: ClarificationExtension) -> None:
        for name in filter(None, (item.created_by, item.claimed_by)):
            self._known(f"{path}.created_by", name, self._users, "account")
        for team in filter(None, (item.from_team, item.to_team)):
            self._known(f"{path}.from_team", team, self._teams, "team")
        for group in item.to_groups:
            self._known(f"{path}.to_groups", group, self._groups, "group")
        if item.problem is not None:
            self._known(f"{path}.problem", item.problem, self._problems, "problem")

    def _check_materials(self) -> None:
        items = self._extension.materials
        if len(items) > MAX_FILES:
            self._error("materials", f"at most {MAX_FILES} files are allowed.")
        for item in items:
            _collect(self._findings, EXTENSION_FILE, lambda item=item: checked_name(item.name))  # type: ignore[misc]  # bound in each pass
            _collect(self._findings, EXTENSION_FILE, lambda item=item: checked_title(item.title))  # type: ignore[misc]  # bound in each pass

    def _known(self, path: str, name: str, known: set[str], kind: str) -> None:
        if name not in known:
            self._error(path, f"there is no {kind} {name[:60]!r} in the package.")

    def _unique(self, section: str, keys: Iterable[str]) -> None:
        seen: set[str] = set()
        for index, key in enumerate(keys):
            if key in seen:
                self._error(f"{section}[{index}]", f"{key[:60]!r} is used twice.")
            seen.add(key)

    def _error(self, path: str, message: str) -> None:
        self._findings.error(EXTENSION_FILE, f"{path}: {message}")
