"""The how-to pages' commands work as written, on one judge that is up and has a problem of the reader's own."""

from __future__ import annotations

import dataclasses
import re
import shutil
from pathlib import Path

import click
import pytest

from adjudge.cli import LazyCommand, main
from adjudge.settings import CONFIG_VARIABLE, load
from adjudge.settings.sections import SECTIONS
from adjudge.settings.setting import environment_names
from tests.support.documents import Terminal, blocks_of
from tests.support.install import ROOT

HOW_TO = ROOT / "docs" / "how-to"
PAGES = (
    "import-a-problem",
    "publish-a-problem",
    "submit-with-the-api",
    "use-the-client",
    "rejudge",
    "automate-with-chains",
    "manage-users-and-tokens",
)
_LANGUAGES = {"sh", "text", "json", "yaml", "toml", "http", "python"}
_PREPARED = """# What the reader has

<!-- server -->
```sh
make up # PORT=9000
```

```sh
export ADJUDGE=http://127.0.0.1:8080 PATH="$PWD/.venv/bin:$PATH"
export TOKEN=$(adjudge user token admin --scope '*' --days 1)
adjudge login "$ADJUDGE" --token - <<< "$TOKEN"
adjudge problem new sum --title "The Sum"
adjudge problem export sum --to sum.zip
mv sum kept
```
"""


@pytest.mark.slow
def test_every_command_of_the_how_to_pages_works_as_written(terminal: Terminal, tmp_path: Path) -> None:
    before = set(terminal.folder.iterdir())
    begin = tmp_path / "prepared.md"
    begin.write_text(_PREPARED)
    terminal.follow(begin)
    for page in PAGES:
        terminal.follow(HOW_TO / f"{page}.md")
    terminal.stop()
    for path in set(terminal.folder.iterdir()) - before:  # the tutorials share the clone
        shutil.rmtree(path) if path.is_dir() else path.unlink()


def test_blocks_of_these_pages_say_what_they_are() -> None:
    for page in PAGES:
        for block in blocks_of((HOW_TO / f"{page}.md").read_text()):
            assert block.language in _LANGUAGES, f"{page}, line {block.line}: which language is that?"
            assert block.word != "skip" or re.search(r"\w{4}", block.value), f"{page}, line {block.line}: skipped why?"


def test_settings_that_pages_show_exist_and_are_taken(tmp_path: Path) -> None:
    file = tmp_path / "adjudge.toml"
    for page in _guides():
        for block in blocks_of(page.read_text()):
            where = f"{page.name}, line {block.line}"
            if block.language == "toml" and "[project" not in block.text:
                file.write_text(block.text)
                load(environ={}, file=file)
            shown = set(re.findall(r"\bADJUDGE_[A-Z0-9_]+", block.text)) if block.language == "sh" else set()
            assert shown <= _names(), f"{where}: no setting is read from {sorted(shown - _names())}"


def test_commands_and_options_that_pages_name_exist() -> None:
    """Also those in the middle of a sentence, which nothing runs."""
    for page in _guides():
        for written in re.findall(r"`adjudge ([a-z][^`|]*)", page.read_text()):
            command: click.Command = main
            words = written.split()
            while words and isinstance(command, click.Group) and re.fullmatch(r"[a-z][a-z-]*", words[0]):
                name = words.pop(0)
                found = command.get_command(click.Context(command), name)
                assert found is not None, f"{page.name}: `adjudge {written}`: there is no command {name}"
                command = found.load() if isinstance(found, LazyCommand) else found
            options = {option for param in command.params for option in (*param.opts, *param.secondary_opts)}
            for word in words[: words.index("--") if "--" in words else None]:
                if word.startswith("--"):
                    assert word.partition("=")[0] in options | {"--help"}, f"{page.name}: `adjudge {written}`: {word}"


def _guides() -> list[Path]:
    return [
        ROOT / "README.md",
        *sorted((ROOT / "docs").glob("how-to/*.md")),
        *sorted((ROOT / "docs").glob("tutorial/*.md")),
    ]


def _names() -> set[str]:
    """Every variable that a setting is read from."""
    settings = [item.metadata["setting"] for model in SECTIONS.values() for item in dataclasses.fields(model)]
    return {CONFIG_VARIABLE, "ADJUDGE_PYTHON"}.union(*map(environment_names, settings))
