"""The cache of compiled programs: whole entries, bounded, the longest unused going first."""

from __future__ import annotations

import os
from pathlib import Path

from adjudge.judge.artifacts import ArtifactCache


def put(cache: ArtifactCache, key: str, size_bytes: int) -> Path:
    with cache.stage() as staged:
        (staged / "main").write_bytes(b"x" * size_bytes)
        (staged / "main").chmod(0o700)
        return cache.put(key, staged)


def test_an_entry_is_whole_and_readable_by_the_box(tmp_path: Path) -> None:
    cache = ArtifactCache(tmp_path)
    assert cache.get("k") is None
    entry = put(cache, "k", 10)
    assert cache.get("k") == entry
    assert (entry / "main").stat().st_mode & 0o777 == 0o755
    assert not list((tmp_path / "staging").iterdir())


def test_the_longest_unused_go_first_and_those_in_use_stay(tmp_path: Path) -> None:
    cache = ArtifactCache(tmp_path, bound_bytes=100, grace_sec=0)
    for age, key in enumerate(("old", "held", "young")):
        os.utime(put(cache, key, 30), (age, age))
    with cache.hold("held"):
        put(cache, "new", 40)
    assert cache.get("old") is None
    assert cache.get("held") is not None
    assert cache.get("new") is not None


def test_the_first_of_two_writers_wins(tmp_path: Path) -> None:
    one, two = ArtifactCache(tmp_path), ArtifactCache(tmp_path)
    put(one, "k", 1)
    entry = put(two, "k", 2)
    assert (entry / "main").stat().st_size == 1


def test_links_that_a_compiler_left_are_dropped(tmp_path: Path) -> None:
    cache = ArtifactCache(tmp_path)
    with cache.stage() as staged:
        (staged / "secret").symlink_to("/etc/passwd")
        (staged / "folder").symlink_to("/etc")
        entry = cache.put("k", staged)
    assert not list(entry.iterdir())
