"""The compile cache: complete entries, size limit, LRU eviction."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from adjudge.judge.compile_cache import CompileCache, CompiledArtifact, disk_bytes

BLOCK = 4096
ENTRY = 2 * BLOCK
"""An entry with a small file: the directory and the file."""


def put(cache: CompileCache, key: str, size_bytes: int = 10) -> CompiledArtifact:
    with cache.stage() as staged:
        (staged / "main").write_bytes(b"x" * size_bytes)
        (staged / "main").chmod(0o700)
        return cache.put(key, staged)


def used_at(cache: CompileCache, key: str, timestamp: int) -> None:
    os.utime(cache.root / "entries" / key, (timestamp, timestamp))


def entries(cache: CompileCache) -> set[str]:
    return {entry.name for entry in (cache.root / "entries").iterdir()}


def test_entry_is_complete_and_readable_in_sandbox(tmp_path: Path) -> None:
    cache = CompileCache(tmp_path)
    assert cache.get("k") is None
    made = put(cache, "k", 10)
    found = cache.get("k")
    assert found is not None
    assert found.directory == made.directory
    assert (made.directory / "main").stat().st_mode & 0o777 == 0o755
    assert not list((tmp_path / "staging").iterdir())


def test_least_recently_used_entry_is_evicted_first(tmp_path: Path) -> None:
    cache = CompileCache(tmp_path, bound_bytes=3 * ENTRY)
    for timestamp, key in enumerate(("old", "middle", "young")):
        put(cache, key)
        used_at(cache, key, timestamp)
    put(cache, "new")
    assert entries(cache) == {"middle", "young", "new"}


def test_size_limit_holds_after_every_step(tmp_path: Path) -> None:
    caches = [CompileCache(tmp_path, bound_bytes=10 * ENTRY) for _ in range(2)]
    kept = []
    for number in range(40):
        artifact = put(caches[number % 2], str(number), 1 + number * 700)
        if number % 5 == 0:
            kept.append(artifact)
        assert disk_bytes(tmp_path / "entries") - BLOCK <= 10 * ENTRY
        assert (artifact.directory / "main").stat().st_size == 1 + number * 700
    assert all((artifact.directory / "main").is_file() for artifact in kept)


def test_entry_in_use_is_not_evicted(tmp_path: Path) -> None:
    cache, other = (CompileCache(tmp_path, bound_bytes=2 * ENTRY) for _ in range(2))
    held = put(cache, "held")
    used_at(cache, "held", 0)
    put(other, "a")
    put(other, "b")
    assert entries(cache) == {"held", "b"}
    del held
    put(other, "c")
    assert entries(cache) == {"b", "c"}


def test_program_that_does_not_fit_is_used_but_not_cached(tmp_path: Path) -> None:
    cache = CompileCache(tmp_path, bound_bytes=ENTRY)
    held = put(cache, "held")
    extra = put(cache, "extra")
    assert entries(cache) == {"held"}
    assert (extra.directory / "main").read_bytes() == b"x" * 10
    assert cache.get("extra") is None
    del extra
    assert not list((tmp_path / "staging").iterdir())
    assert held.directory.is_dir()


def test_zero_size_limit_disables_cache(tmp_path: Path) -> None:
    cache = CompileCache(tmp_path, bound_bytes=0)
    made = put(cache, "k")
    assert (made.directory / "main").is_file()
    assert not entries(cache)
    del made
    assert not list((tmp_path / "staging").iterdir())


def test_small_files_count_by_disk_usage(tmp_path: Path) -> None:
    cache = CompileCache(tmp_path, bound_bytes=50 * BLOCK)
    with cache.stage() as staged:
        for number in range(100):
            (staged / str(number)).touch()
        cache.put("classes", staged)
    assert not entries(cache)


def test_the_first_of_two_writers_wins(tmp_path: Path) -> None:
    one, two = CompileCache(tmp_path), CompileCache(tmp_path)
    put(one, "k", 1)
    assert (put(two, "k", 2).directory / "main").stat().st_size == 1


def test_symbolic_links_are_removed(tmp_path: Path) -> None:
    cache = CompileCache(tmp_path)
    with cache.stage() as staged:
        (staged / "secret").symlink_to("/etc/passwd")
        (staged / "folder").symlink_to("/etc")
        entry = cache.put("k", staged)
    assert not list(entry.directory.iterdir())


KILLED = """
import os, sys
from pathlib import Path
from adjudge.judge.compile_cache import CompileCache
cache = CompileCache(Path(sys.argv[1]), bound_bytes=0)
with cache.stage() as staged:
    (staged / "main").write_bytes(b"x")
    uncached = cache.put("k", staged)
    with cache.stage() as second:
        print("ready", flush=True)
        sys.stdin.read()
        os._exit(9)
"""


def test_staging_of_killed_process_is_removed(tmp_path: Path) -> None:
    argv = [sys.executable, "-c", KILLED, str(tmp_path)]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        CompileCache(tmp_path)
        assert len(list((tmp_path / "staging").iterdir())) == 2
        process.communicate(b"")
    CompileCache(tmp_path)
    assert not list((tmp_path / "staging").iterdir())
