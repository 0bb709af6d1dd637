"""Language ids of Judge0 1.13.1 and 1.14.0, mapped to our languages.

Clients hard-code these numbers. Several versions of a compiler there are one language here; languages whose toolchain
Adjudge does not have (Clang, Scala, R and others) are not listed and are refused.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from adjudge.judge.languages import Language, Languages

_IDS: Final = {
    "bash": (46,),
    "c": (48, 49, 50, 103),
    "csharp": (51,),
    "cpp17": (52, 53, 54, 105),
    "d": (56,),
    "fortran": (59,),
    "go": (60, 95, 106, 107),
    "haskell": (61,),
    "java": (62, 91),
    "javascript": (63, 93, 97, 102),
    "lua": (64,),
    "ocaml": (65,),
    "pascal": (67,),
    "php": (68, 98),
    "python3": (71, 92, 100, 109, 113),
    "ruby": (72,),
    "rust": (73, 108),
    "typescript": (74, 94, 101),
    "kotlin": (78, 111),
    "perl": (85,),
}
"""Our language id → ids of Judge0."""
_FLAGS: Final = "{flags}"


@dataclass(frozen=True, slots=True)
class Judge0Language:
    """A language with its id of Judge0."""

    id: int
    language: Language

    @property
    def has_compiler_options(self) -> bool:
        """Whether ``compiler_options`` can be given."""
        return _FLAGS in self.language.compile

    def summary(self) -> dict[str, Any]:
        return {"id": self.id, "name": self.language.name}

    def detail(self) -> dict[str, Any]:
        compile_cmd = " ".join("%s" if part == _FLAGS else part for part in self.language.compile)
        return {
            **self.summary(),
            "is_archived": False,
            "source_file": self.language.source,
            "compile_cmd": compile_cmd or None,
            "run_cmd": " ".join(self.language.run),
        }


def list_judge0_languages(languages: Languages) -> list[Judge0Language]:
    """The languages of this installation, by id."""
    return sorted(_listed(languages), key=lambda item: item.id)


def _listed(languages: Languages) -> Iterator[Judge0Language]:
    for language in languages.offered():
        for judge0_id in _IDS.get(language.id, ()):
            yield Judge0Language(judge0_id, language)
