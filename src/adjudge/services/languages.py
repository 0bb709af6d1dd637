"""Languages and their source templates."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Final

from adjudge import __version__
from adjudge.cache.entry import CachedValue
from adjudge.cache.policies import CacheEntity
from adjudge.cache.two_tier import TwoTierCache
from adjudge.domain.errors import InvalidInput, NotFound
from adjudge.judge.languages import Language, Languages

_REVISION: Final = "templates"
"""Templates are part of the program, so the cache key changes with its version."""


@cache
def _templates() -> dict[str, str]:
    text = resources.files("adjudge.judge").joinpath("templates.toml").read_text("utf-8")
    return {name: str(body["source"]) for name, body in tomllib.loads(text).items()}


def template_for(language: Language) -> str | None:
    """A program that reads two numbers and prints their sum; languages with the same package name share one."""
    return _templates().get(language.id) or _templates().get(language.code)


@dataclass(frozen=True, slots=True)
class LanguageInfo:
    """A language in the list."""

    id: str
    name: str
    code: str
    extensions: list[str]
    source: str
    entry_point: str
    time_factor: float
    has_template: bool


@dataclass(frozen=True, slots=True)
class SourceTemplate:
    """The source template of a language."""

    language: str
    file_name: str
    source: str


@dataclass(frozen=True, slots=True)
class LanguageService:
    """The languages and their source templates."""

    cache: TwoTierCache
    languages: Languages
    encode_list: Callable[[Sequence[LanguageInfo]], bytes]
    encode_template: Callable[[SourceTemplate], bytes]
    """How the API encodes them; the cache keeps encoded responses."""

    async def list_languages(self) -> CachedValue:
        async def load() -> bytes:
            items = [
                LanguageInfo(
                    id=language.id,
                    name=language.name,
                    code=language.code,
                    extensions=list(language.extensions),
                    source=language.source,
                    entry_point=language.entry_point.value,
                    time_factor=language.time_factor,
                    has_template=template_for(language) is not None,
                )
                for language in self.languages.offered()
            ]
            return self.encode_list(items)

        return _found_or_raise(
            await self.cache.get(
                CacheEntity.TEMPLATE, f"all@{__version__}-{self.languages.digest}", load, revision=_REVISION
            ),
            "languages",
        )

    async def get_template(self, name: str) -> CachedValue:
        """The source template of a language, encoded."""
        try:
            language = self.languages.get(name)
        except InvalidInput:
            raise NotFound("language", name) from None

        async def load() -> bytes | None:
            source = template_for(language)
            if source is None:
                return None
            return self.encode_template(SourceTemplate(language=language.id, file_name=language.source, source=source))

        selector = f"{language.id}@{__version__}-{self.languages.digest}"
        return _found_or_raise(await self.cache.get(CacheEntity.TEMPLATE, selector, load, revision=_REVISION), name)


def _found_or_raise(found: CachedValue | None, name: str) -> CachedValue:
    if found is None:
        raise NotFound("template", name)
    return found
