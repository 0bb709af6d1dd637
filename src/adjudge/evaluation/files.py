"""Files of records and results (JSON Lines), and what a result file already contains."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Container, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from adjudge.domain.errors import InvalidInput
from adjudge.evaluation.records import parse_line
from adjudge.evaluation.shapes import record_id


@dataclass(slots=True)
class RecordFile:
    """Records of a file that have no result yet; invalid lines are counted and reported with their number."""

    lines: IO[bytes]
    done: Container[str] = frozenset()
    skipped: int = 0
    """Records that have a result already."""
    seen: set[str] = field(default_factory=set)

    def __iter__(self) -> Iterator[Mapping[str, Any]]:
        for number, line in enumerate(self.lines, 1):
            if not line.strip():
                continue
            try:
                document = parse_line(line)
                found = record_id(document)
            except InvalidInput as error:
                raise InvalidInput(f"Line {number}: {error.message}", field="line") from None
            if found in self.seen:
                raise InvalidInput(f"Line {number}: id {found!r} occurs twice; give each record its own.", field="id")
            self.seen.add(found)
            if found in self.done:
                self.skipped += 1
            else:
                yield document


@dataclass(slots=True)
class ResultFile:
    """A file of results that is continued: results in it are kept.

    An incomplete last line and lines with an error are removed, so that their records are evaluated again.
    """

    path: Path
    done: set[str] = field(default_factory=set)
    verdicts: Counter[str] = field(default_factory=Counter)

    def load(self) -> None:
        """Read the ids and verdicts of the results that are there."""
        if not self.path.exists():
            return
        complete, errors = 0, 0
        with self.path.open("rb") as lines:
            for line in lines:
                if not line.endswith(b"\n"):
                    break
                document = parse_result(line, self.path)
                if document["verdict"] is None:
                    errors += 1
                else:
                    self._add(document)
                complete += len(line)
        with self.path.open("r+b") as file:
            file.truncate(complete)
        if errors:
            self._remove_errors()

    def _remove_errors(self) -> None:
        """Replace the file by one without errors; an interruption leaves one of the two."""
        kept = self.path.with_name(f"{self.path.name}.partial")
        with self.path.open("rb") as lines, kept.open("wb") as file:
            file.writelines(line for line in lines if parse_result(line, self.path)["verdict"] is not None)
            file.flush()
            os.fsync(file.fileno())
        kept.replace(self.path)

    def _add(self, document: Mapping[str, Any]) -> None:
        self.done.add(str(document["id"]))
        self.verdicts[str(document["verdict"] or "error")] += 1

    def write(self, file: IO[bytes], document: Mapping[str, Any]) -> None:
        """Append the document of a result."""
        file.write(json.dumps(document, ensure_ascii=False).encode("utf-8", "replace") + b"\n")
        self._add(document)


def parse_result(line: bytes, path: Path) -> Mapping[str, Any]:
    """A line of a result file."""
    try:
        document = parse_line(line)
        if "id" in document and "verdict" in document:
            return document
    except InvalidInput:
        pass
    raise InvalidInput(
        f"{path}: contains a line that is not a result; give another file with --output.", field="output"
    )
