"""Submitted archives: what is unpacked, and what is refused."""

from __future__ import annotations

import gzip
import io
import stat
import tarfile
import zipfile

import pytest

from adjudge.domain.errors import InvalidInput
from adjudge.judge.sources import SourceFile
from adjudge.packages.source_archive import FileLimits, expand_archives

LIMITS = FileLimits(files=4, total_bytes=1_000)


def zipped(files: dict[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", method) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return data.getvalue()


def tarred(files: dict[str, bytes], *extra: tarfile.TarInfo) -> bytes:
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w") as archive:
        for name, content in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
        for info in extra:
            archive.addfile(info)
    return data.getvalue()


def expanded(name: str, data: bytes) -> dict[str, bytes]:
    return {file.name: file.data for file in expand_archives([SourceFile(name, data)], LIMITS)}


def refused(name: str, data: bytes) -> str:
    with pytest.raises(InvalidInput) as caught:
        expanded(name, data)
    assert caught.value.fields["field"] == "files"
    return caught.value.message


FILES = {"a.cpp": b"int x;", "lib/b.h": b"\xff\x00"}


@pytest.mark.parametrize("name", ["s.zip", "s.tar", "s.tar.gz", "S.TGZ"])
def test_archives_are_replaced_by_their_files(name: str) -> None:
    data = zipped(FILES) if name == "s.zip" else tarred(FILES)
    assert expanded(name, data if name.endswith(("zip", "tar")) else gzip.compress(data)) == FILES


def test_folders_and_archiver_files_are_ignored() -> None:
    data = zipped({"lib/": b"", "__MACOSX/x": b"", ".DS_Store": b"", "a.py": b"1"})
    assert expanded("s.zip", data) == {"a.py": b"1"}


def test_files_and_archives_mix() -> None:
    files = [SourceFile("main.py", b"1"), SourceFile("s.zip", zipped({"lib.py": b"2"}))]
    assert [file.name for file in expand_archives(files, LIMITS)] == ["main.py", "lib.py"]


@pytest.mark.parametrize(
    "name", ["../a.py", "/etc/passwd", "x/../../a.py", "c:\\a.py", "a\x1b.py", "-o.cpp", "x/@a.java"]
)
def test_dangerous_names_are_refused(name: str) -> None:
    assert "files: " in refused("s.zip", zipped({name: b""}))
    assert "files: " in refused(name, b"")


def test_links_and_devices_are_refused() -> None:
    link = tarfile.TarInfo("link.py")
    link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
    device = tarfile.TarInfo("null.py")
    device.type = tarfile.CHRTYPE
    for info in (link, device):
        assert info.name in refused("s.tar", tarred({}, info))
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as archive:
        entry = zipfile.ZipInfo("link.py")
        entry.external_attr = (stat.S_IFLNK | 0o777) << 16
        archive.writestr(entry, "/etc/passwd")
    assert "s.zip: link.py: is a link or a device" in refused("s.zip", data.getvalue())


def test_bombs_are_refused_before_they_are_unpacked() -> None:
    message = "more than 1000 bytes in all"
    assert message in refused("s.zip", zipped({"zeros.txt": bytes(10_000_000)}))
    assert message in refused("s.tgz", gzip.compress(tarred({"zeros.txt": bytes(100_000)})))
    assert "unpacks to more than" in refused("s.tgz", gzip.compress(bytes(20_000_000)))
    assert "another method" in refused("s.zip", zipped({"a.py": b"1"}, zipfile.ZIP_LZMA))
    assert message in refused("plain.txt", bytes(1_001))


def test_limits_of_count_name_the_archive() -> None:
    assert "s.zip: has more than 4 files" in refused("s.zip", zipped({f"{n}.py": b"1" for n in range(5)}))
    files = [SourceFile(f"{n}.py", b"1") for n in range(5)]
    with pytest.raises(InvalidInput, match="more than 4 files"):
        expand_archives(files, LIMITS)


@pytest.mark.parametrize("name", ["s.zip", "s.tar", "s.tar.gz"])
def test_damaged_and_empty_archives_are_refused(name: str) -> None:
    assert f"{name}: is not a readable archive" in refused(name, b"no archive at all")
    empty = zipped({}) if name == "s.zip" else tarred({})
    assert "has no files" in refused(name, gzip.compress(empty) if name.endswith("gz") else empty)


def test_duplicates_and_conflicts_are_refused() -> None:
    with pytest.raises(InvalidInput, match=r"a\.py: given twice"):
        expand_archives([SourceFile("a.py", b""), SourceFile("s.zip", zipped({"a.py": b"1"}))], LIMITS)
    with pytest.raises(InvalidInput, match="lib: is both a file and a folder"):
        expand_archives([SourceFile("lib", b""), SourceFile("lib/a.py", b"")], LIMITS)
