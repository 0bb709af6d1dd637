"""Files of teams, groups, organisations and accounts: what is read, and which line and field an error names."""

from __future__ import annotations

import json

from adjudge.packages.team_files import ACCOUNT_TYPES, read_team_files

TEAMS = [
    {"id": "1", "name": "Null Pointers", "organization_id": "uni", "group_ids": ["north"], "label": "42"},
    {"id": "2", "name": "x", "display_name": "Segfaults", "icpc_id": "447", "hidden": True},
]
TSV = "File_Version\t2\n11\t447047\tnorth\t¡i¡i¡\tUniversity of North\tUN\tNOR\tINST-9\n"


def errors(*files: tuple[str, str]) -> list[str]:
    return [str(item) for item in read_team_files(files).findings.items]


def test_json_and_yaml_of_the_contest_package() -> None:
    found = read_team_files(
        [("teams.json", json.dumps(TEAMS, indent="\t")), ("groups.yaml", "- {id: north, name: N}\n")]
    )
    assert found.findings.items == []
    assert [(item.code, item.name, item.organization, item.groups) for item in found.teams] == [
        ("1", "Null Pointers", "uni", ("north",)),
        ("2", "Segfaults", None, ()),
    ]
    assert (found.teams[0].label, found.teams[1].icpc_id, found.teams[1].hidden) == ("42", "447", True)
    assert [item.code for item in found.groups] == ["north"]


def test_tsv_of_domjudge_in_both_versions() -> None:
    for header, institution in (("File_Version\t2", "9"), ("teams\t2", "9"), ("teams\t1", "UN")):
        row = "\t".join(TSV.splitlines()[1].split("\t")[: 8 if header.endswith("2") else 7])
        found = read_team_files([("teams.tsv", f"{header}\r\n{row}\r\n")])
        (team,), (organization,) = found.teams, found.organizations
        assert (team.code, team.icpc_id, team.groups, team.name) == ("11", "447047", ("north",), "¡i¡i¡")
        assert (organization.code, organization.formal_name, organization.country) == (
            institution,
            "University of North",
            "NOR",
        )
        assert team.organization == institution


def test_accounts_tsv_finds_the_team_by_digits_in_the_user_name() -> None:
    text = "accounts\t1\nteam\tNull Pointers\tteam-011\tsecret-1\t10.0.0.7\njudge\tJay\tjay\tsecret-2\n"
    team, judge = read_team_files([("accounts.tsv", text)]).accounts
    assert (team.code, team.team, team.password, team.ip) == ("team-011", "11", "secret-1", "10.0.0.7")
    assert (judge.type, judge.team) == ("judge", None)
    assert "secret" not in repr(team)


def test_errors_name_file_line_and_field() -> None:
    assert errors(("teams.json", '[\n{"id": "1", "name": "A"},\n{"id": "1", "name": "B"}]')) == [
        "teams.json:3: error: id: '1' is used twice; first in teams.json:2."
    ]
    assert errors(("teams.yaml", "- id: -x\n  name: ''\n")) == [
        "teams.yaml:1: error: [0].id: '-x' is not an id: expected 1 to 36 letters, digits, '_', '.' or '-'.",
        "teams.yaml:2: error: [0].name: expected 1 to 200 characters.",
    ]
    assert errors(("teams.tsv", "teams\t3\n")) == [
        "teams.tsv:1: error: column 2: version '3' of teams is unknown; expected 1 or 2."
    ]
    assert errors(("accounts.tsv", "accounts\t1\nteam\tA\talice\tpw\nking\tB\tbob\tpw\n")) == [
        "accounts.tsv:2: error: column 3 (username): 'alice' has no digits; the number in it names the team.",
        f"accounts.tsv:3: error: column 1 (type): 'king' is not one of {', '.join(ACCOUNT_TYPES)}.",
    ]
    assert errors(("teams.txt", ""))[0].startswith("teams.txt: error: unknown file type.")
    assert errors(("teams.json", "{}"))[0] == "teams.json:1: error: must be a list of objects."
    assert "is not valid YAML" in errors(("teams.json", "[{"))[0]
