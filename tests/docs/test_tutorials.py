"""A newcomer follows the README and the tutorials on a new clone, command by command, and everything works.

The clone lies in a folder with a space and sets itself up with ``make up``, as the README says. Pages are followed as
they are written, but for the port: another judge may run on 8080.
"""

from __future__ import annotations

import re
import subprocess

import httpx
import pytest

from tests.support.documents import Terminal, blocks_of
from tests.support.install import ROOT

TUTORIALS = ROOT / "docs" / "tutorial"
PAGES = ["README.md", *sorted(str(page.relative_to(ROOT)) for page in TUTORIALS.glob("*.md"))]


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES[1:])
def test_every_command_of_the_tutorial_works_as_written(page: str, terminal: Terminal) -> None:
    terminal.follow(terminal.folder / page)
    subprocess.run(["rm", "-rf", str(terminal.folder / "var")], check=True)  # every page begins anew


@pytest.mark.slow
def test_readme_works_as_written_and_the_printed_password_and_token_work(terminal: Terminal) -> None:
    """What the pages say in prose: log in with what was printed, choose a password; the terminal goes on working."""
    terminal.follow(terminal.folder / "README.md")
    said = "\n".join(terminal.printed)
    url = re.search(r"Adjudge is running at (\S+)", said)
    password = re.search(r"log in as admin with the one-time password (\S+) ", said)
    command = re.search(r"a token for programs: (.*)", said)
    assert url
    assert password
    assert command
    token = subprocess.run(
        command[1].split(),
        cwd=terminal.folder,
        env=dict(terminal.environment),
        capture_output=True,
        text=True,
        check=True,
    ).stdout.strip()
    with httpx.Client(base_url=url[1], timeout=120) as browser:
        me = browser.post("/api/v1/login", json={"name": "admin", "password": password[1]}).raise_for_status().json()
        change = {"current": password[1], "new": "a password of my own"}
        answer = browser.post("/api/v1/me:password", json=change, headers={"X-CSRF-Token": me["csrf_token"]})
        assert answer.status_code == 204, answer.text
    mine = httpx.get(f"{url[1]}/api/v1/submissions", headers={"Authorization": f"Bearer {token}"}, timeout=120)
    assert mine.status_code == 200
    assert len(mine.json()["items"]) == 2, "the page's two submissions"
    subprocess.run(["rm", "-rf", str(terminal.folder / "var")], check=True)


def test_pages_have_no_block_that_is_neither_run_nor_explained() -> None:
    for page in PAGES:
        for block in blocks_of((ROOT / page).read_text()):
            known = block.language in ("sh", "text", "mermaid") or block.word
            assert known, f"{page}, line {block.line}: say what it is: sh, text, or a comment before it"
            assert block.word != "skip" or re.search(r"\w{4}", block.value), f"{page}, line {block.line}: skipped why?"
