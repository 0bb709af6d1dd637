"""The messages that the troubleshooting table quotes are messages of the code."""

from __future__ import annotations

import ast
import re

from scripts.generate_docs import DOCS, ROOT


def _texts() -> str:
    """All string constants of the packages that read and verify problems."""
    folders = [ROOT / "src" / "adjudge" / name for name in ("packages", "judge", "cli")]
    return "\n".join(
        node.value
        for folder in folders
        for path in folder.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    )


def test_quoted_messages_exist() -> None:
    page, texts = (DOCS / "how-to" / "import-a-problem.md").read_text(), _texts()
    quoted = re.findall(r"^\| `([^`]+)` \|", page.partition("## Troubleshooting")[2], re.MULTILINE)
    assert len(quoted) > 5
    parts = {part.strip() for message in quoted for part in message.split("…")}
    assert sorted(part for part in parts if part not in texts) == [], "update docs/how-to/import-a-problem.md"
