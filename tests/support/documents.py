"""Runs the commands of documentation pages as they are written.

The fenced blocks of a page are read in order. ``sh`` blocks are run by bash, one after the other; what one exports the
next one sees. A ``text`` block right after one is what it printed: each of its lines without a digit or an ellipsis
must be in the output. Other blocks are looked at only where an HTML comment, which readers do not see, says what they
are. The comment stands on the line before the block:

- ``<!-- file: NAME -->``: save the block under that name
- ``<!-- exit: 1 -->``: the last command ends with this code
- ``<!-- server -->``: the block starts a server, which runs until the page ends
- ``<!-- skip: WHY -->``: do not run it
"""

from __future__ import annotations

import re
import subprocess
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

DIRECTIVES: Final = ("file", "exit", "server", "skip")
_BLOCK = re.compile(
    r"(?:^<!-- *(?P<word>[a-z]+)(?:: *(?P<value>.*?))? *-->\n+)?^```(?P<language>\w*)\n(?P<text>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)
_SHELL_SEC: Final = 600
_READY: Final = "Press Ctrl-C to stop."


@dataclass(frozen=True, slots=True)
class Block:
    """One fenced block of a page, and what the comment before it says."""

    language: str
    text: str
    word: str = ""
    value: str = ""
    line: int = 0


def blocks_of(markdown: str) -> list[Block]:
    """Every fenced block, in order."""
    found = []
    for match in _BLOCK.finditer(markdown):
        word = match["word"] or ""
        line = markdown.count("\n", 0, match.start("language")) + 1
        if word and word not in DIRECTIVES:
            raise ValueError(f"line {line}: <!-- {word} --> before a block is none of {', '.join(DIRECTIVES)}")
        found.append(Block(match["language"], match["text"], word, match["value"] or "", line))
    return found


@dataclass
class Terminal:
    """A folder and an environment in which the commands of pages run."""

    folder: Path
    environment: Mapping[str, str]
    replaced: Sequence[tuple[str, str]] = ()
    """Replacements in the text of a page, usually of the port 8080."""
    printed: list[str] = field(default_factory=list)
    """Output of the servers."""
    _servers: list[subprocess.Popen[str]] = field(default_factory=list)
    _variables: str = ""

    def follow(self, page: Path) -> None:
        """Run all blocks of a page in order."""
        output = ""
        for block in blocks_of(page.read_text(encoding="utf-8")):
            where = f"{page.name}, line {block.line}"
            if block.word == "skip":
                output = ""
            elif block.word == "file":
                self._save(block)
            elif block.word == "server":
                self._serve(self._words(block.text))
            elif block.language == "sh":
                output = self._shell(where, block)
            elif block.language == "text":
                _compare(where, block.text, output)

    def stop(self) -> None:
        """Stop the servers that a page started."""
        for server in self._servers:
            server.terminate()
            try:
                server.wait(60)
            except subprocess.TimeoutExpired:
                server.kill()
                server.wait()
            if server.stdout is not None:
                server.stdout.close()
        self._servers.clear()

    def _words(self, text: str) -> str:
        for old, new in self.replaced:
            text = text.replace(old, new)
        return text

    def _save(self, block: Block) -> None:
        path = self.folder / block.value
        assert path.resolve().is_relative_to(self.folder.resolve()), f"line {block.line}: {block.value} leads away"
        path.write_text(block.text, encoding="utf-8")

    def _shell(self, where: str, block: Block) -> str:
        variables = self.folder.parent / "variables.sh"
        variables.write_text(self._variables, encoding="utf-8")
        # A comment that ends a page's line stays one; `trap` writes the variables down however the block ends.
        script = f"source '{variables}'\ntrap 'export -p > \"{variables}\"' EXIT\nset -e -o pipefail\n"
        code = int(block.value) if block.word == "exit" else 0
        output = self._run(where, ["bash", "-s"], script + self._words(block.text), code)
        self._variables = variables.read_text(encoding="utf-8")
        return output

    def _run(self, where: str, argv: Sequence[str], given: str, code: int) -> str:
        done = subprocess.run(
            argv,
            cwd=self.folder,
            env=dict(self.environment),
            input=given,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=_SHELL_SEC,
            check=False,
        )
        assert done.returncode == code, f"{where}: it ended with {done.returncode}, not {code}:\n{done.stdout[-4_000:]}"
        return done.stdout

    def _serve(self, text: str) -> None:
        """Start a server and wait until it reports that it is ready."""
        server = subprocess.Popen(
            ["bash", "-c", f"exec {text.split('#', maxsplit=1)[0].strip()}"],
            cwd=self.folder,
            env=dict(self.environment),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self._servers.append(server)
        assert server.stdout is not None
        for line in server.stdout:
            self.printed.append(line.rstrip("\n"))
            if line.startswith(_READY):
                break
        else:
            raise AssertionError("the server ended:\n" + "\n".join(self.printed))
        threading.Thread(target=_drain, args=(server,), daemon=True).start()


def _drain(server: subprocess.Popen[str]) -> None:
    """Keep reading, because a full pipe would block the server."""
    assert server.stdout is not None
    try:
        for _ in server.stdout:
            pass
    except ValueError:  # it was closed
        pass


def _compare(where: str, shown: str, printed: str) -> None:
    """Compare the output shown on a page with the actual one; numbers may differ, words may not."""
    if not printed:
        return
    have = " ".join(printed.split())
    for line in shown.splitlines():
        words = " ".join(line.split())
        if words and not re.search(r"[\d…]", words):
            assert words in have, f"{where}: it shows {words!r}, which was not printed:\n{printed[-4_000:]}"
