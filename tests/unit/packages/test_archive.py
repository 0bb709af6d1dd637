"""Opening packages: what is refused, and what is followed."""

from __future__ import annotations

import os
import stat
import zipfile
from pathlib import Path

import pytest

from adjudge.domain.errors import NotFound
from adjudge.packages.archive import Links, mount_archive, open_inner_package, open_package
from adjudge.packages.archive_limits import ArchiveLimits
from adjudge.packages.findings import PackageRefused


def _zip(path: Path, entries: list[tuple[str, bytes]], mode: int = stat.S_IFREG | 0o644) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in entries:
            info = zipfile.ZipInfo(name)
            info.external_attr = mode << 16
            info.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(info, data)
    return path


def _with_links(path: Path, files: dict[str, bytes], links: dict[str, str]) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in files.items():
            archive.writestr(name, data)
        for name, target in links.items():
            info = zipfile.ZipInfo(name)
            info.external_attr = (stat.S_IFLNK | 0o777) << 16
            archive.writestr(info, target)
    return path


def _refusal(path: Path, limits: ArchiveLimits | None = None) -> str:
    with pytest.raises(PackageRefused) as caught, open_package(path, limits):
        pass
    return caught.value.message


@pytest.mark.parametrize(
    "name",
    [
        "../evil",
        "a/../../evil",
        "/etc/passwd",
        "C:/evil",
        "C:\\evil",
        "..\\evil",
        "a/\x01b",
        "x/" * 40 + "y",
        "n" * 2000,
    ],
)
def test_unsafe_names_are_rejected(tmp_path: Path, name: str) -> None:
    _refusal(_zip(tmp_path / "p.zip", [(name, b"x")]))
    assert not (tmp_path.parent / "evil").exists()


def test_zip_bomb_is_stopped_while_unpacking(tmp_path: Path) -> None:
    path = _zip(tmp_path / "bomb.zip", [(f"{n}.in", b"\0" * 1_000_000) for n in range(20)])
    assert "unpacks to more" in _refusal(path, ArchiveLimits(ratio=10, ratio_floor_bytes=1_000_000))
    assert "unpacks to more" in _refusal(path, ArchiveLimits(total_bytes=5_000_000))
    assert "unpacks to more" in _refusal(path, ArchiveLimits(file_bytes=999_999))


def test_declared_size_is_not_trusted(tmp_path: Path) -> None:
    path = _zip(tmp_path / "p.zip", [("a.in", b"\0" * 100_000)])
    data = path.read_bytes().replace((100_000).to_bytes(4, "little"), (10).to_bytes(4, "little"))
    path.write_bytes(data)
    _refusal(path)


def test_too_many_entries_are_rejected(tmp_path: Path) -> None:
    path = _zip(tmp_path / "p.zip", [(f"{n}.in", b"") for n in range(30)])
    assert "more than 20 files" in _refusal(path, ArchiveLimits(entries=20))


def test_inner_archives_share_the_limits_of_the_package(tmp_path: Path) -> None:
    inner = _zip(tmp_path / "inner.zip", [(f"data/{n}.in", bytes(10_000)) for n in range(10)]).read_bytes()
    path = _zip(tmp_path / "p.zip", [("a.zip", inner), ("b.zip", inner), ("c.zip", inner)])
    total = 3 * len(inner) + 200_000
    for limits, message in (
        (ArchiveLimits(entries=23), "more than 23 files"),
        (ArchiveLimits(total_bytes=total), "unpacks to more"),
        (ArchiveLimits(ratio=0, ratio_floor_bytes=total), "unpacks to more"),
    ):
        with open_package(path, limits, tmp_path) as files:
            opened = open_inner_package(files, "a.zip")
            assert opened.size_bytes("data/9.in") == 10_000
            mount_archive(files, "b.zip")
            with pytest.raises(PackageRefused) as caught:
                open_inner_package(files, "c.zip")
            assert message in str(caught.value.findings[0])
    assert sorted(item.name for item in tmp_path.iterdir()) == ["inner.zip", "p.zip"]


def test_encrypted_entry_is_rejected(tmp_path: Path) -> None:
    path = _zip(tmp_path / "p.zip", [("a.in", b"secret")])
    data = bytearray(path.read_bytes())
    for signature, offset in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        data[data.index(signature) + offset] |= 1
    path.write_bytes(bytes(data))
    assert "encrypted" in _refusal(path)


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_duplicate_names_are_rejected(tmp_path: Path) -> None:
    assert "twice" in _refusal(_zip(tmp_path / "p.zip", [("a.in", b"1"), ("a.in", b"2")]))
    assert "both a file and a folder" in _refusal(_zip(tmp_path / "q.zip", [("a", b"1"), ("a/b", b"2")]))


def test_devices_are_rejected(tmp_path: Path) -> None:
    path = _zip(tmp_path / "p.zip", [("a.in", b"")], mode=stat.S_IFCHR | 0o666)
    assert "neither a file nor a folder" in _refusal(path)
    folder = tmp_path / "folder"
    folder.mkdir()
    os.mkfifo(folder / "a.in")
    assert "neither a file nor a folder" in _refusal(folder)


@pytest.mark.parametrize("target", ["/etc/passwd", "../../etc/passwd", "../.."])
def test_links_out_of_package_are_rejected(tmp_path: Path, target: str) -> None:
    assert "leaves the package" in _refusal(_with_links(tmp_path / "p.zip", {"d/a.in": b"1"}, {"d/b.in": target}))
    folder = tmp_path / "folder" / "d"
    folder.mkdir(parents=True)
    (folder / "b.in").symlink_to(target)
    assert "link" in _refusal(tmp_path / "folder")


def test_links_inside_are_followed_to_files_and_folders(tmp_path: Path) -> None:
    files = {"data/secret/1/a.in": b"1", "data/secret/1/a.ans": b"2", "problem.yaml": b""}
    links = {"data/secret/2": "1", "data/secret/3.in": "1/a.in", "data/secret/4": "2"}
    path = _with_links(tmp_path / "p.zip", files, links)
    with open_package(path) as package:
        assert package.locate("data/secret/2/a.in").read_bytes() == b"1"
        assert package.locate("data/secret/4/a.ans").read_bytes() == b"2"
        assert package.locate("data/secret/3.in").read_bytes() == b"1"
    folder = tmp_path / "folder"
    (folder / "1").mkdir(parents=True)
    (folder / "1" / "a.in").write_bytes(b"1")
    (folder / "2").symlink_to("1")
    with open_package(folder) as package:
        assert package.names() == ["1/a.in", "2/a.in"]


def _repository(root: Path) -> Path:
    """A contest repository: two packages that share a header and tests."""
    for name in (".git", "shared/tests", "sum/files", "outside"):
        (root / name).mkdir(parents=True)
    (root / "shared" / "lib.h").write_bytes(b"shared")
    (root / "shared" / "tests" / "1.in").write_bytes(b"1")
    (root / ".git" / "config").write_bytes(b"token")
    (root / "sum" / "files" / "lib.h").symlink_to("../../shared/lib.h")
    (root / "sum" / "tests").symlink_to(root / "shared" / "tests")
    return root / "sum"


def test_links_inside_repository_can_be_allowed(tmp_path: Path) -> None:
    package = _repository(tmp_path / "contest")
    assert "leaves the package" in _refusal(package)
    with open_package(package, links=Links.REPOSITORY) as files:
        assert files.names() == ["files/lib.h", "tests/1.in"]
        assert files.locate("files/lib.h").read_bytes() == b"shared"


@pytest.mark.parametrize("target", ["../../outside.txt", "../.git/config", "/etc/passwd"])
def test_links_out_of_repository_need_permission(tmp_path: Path, target: str) -> None:
    package = _repository(tmp_path / "contest")
    (tmp_path / "outside.txt").write_bytes(b"outside")
    (package / "a.in").symlink_to(target)
    with (
        pytest.raises(PackageRefused, match="add --follow-links") as caught,
        open_package(package, links=Links.REPOSITORY),
    ):
        pass
    assert [item.path for item in caught.value.findings] == ["a.in"]
    with open_package(package, links=Links.ANYWHERE) as files:
        assert "a.in" in files


def test_without_a_repository_links_stay_in_the_package(tmp_path: Path) -> None:
    package = _repository(tmp_path / "contest")
    (tmp_path / "contest" / ".git" / "config").unlink()
    (tmp_path / "contest" / ".git").rmdir()
    with pytest.raises(PackageRefused, match="leaves the package"), open_package(package, links=Links.REPOSITORY):
        pass


@pytest.mark.parametrize("links", Links)
def test_links_in_an_archive_never_leave_it(tmp_path: Path, links: Links) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / "secret").write_bytes(b"")
    path = _with_links(tmp_path / "p.zip", {"a.in": b"1"}, {"b.in": "../secret"})
    with pytest.raises(PackageRefused, match="leaves the package"), open_package(path, links=links):
        pass


@pytest.mark.parametrize("links", [{"a": "b", "b": "a"}, {"a": "."}, {"d/a": ".."}, {"a": "nowhere"}])
def test_circular_and_dangling_links_are_rejected(tmp_path: Path, links: dict[str, str]) -> None:
    assert "link" in _refusal(_with_links(tmp_path / "p.zip", {"d/x.in": b"1"}, links))
    folder = tmp_path / "folder" / "d"
    folder.mkdir(parents=True)
    (folder / "x.in").write_bytes(b"")
    for name, target in links.items():
        (tmp_path / "folder" / name).symlink_to(target)
    assert "link" in _refusal(tmp_path / "folder")


def test_single_top_folder_and_junk_are_removed(tmp_path: Path) -> None:
    entries = [
        ("sum/problem.yaml", b""),
        ("sum/data/secret/1.in", b"1"),
        ("__MACOSX/sum/._x", b""),
        ("sum/.DS_Store", b""),
    ]
    with open_package(_zip(tmp_path / "p.zip", entries)) as package:
        assert package.names() == ["data/secret/1.in", "problem.yaml"]
    with open_package(_zip(tmp_path / "q.zip", [("data/secret/1.in", b"1")])) as package:
        assert package.names() == ["data/secret/1.in"]


def test_undeclared_utf_8_names_are_decoded(tmp_path: Path) -> None:
    path = _zip(tmp_path / "p.zip", [("aufgabe-ü.in", b"1")])
    data = bytearray(path.read_bytes())
    for signature, offset in ((b"PK\x03\x04", 7), (b"PK\x01\x02", 9)):
        data[data.index(signature) + offset] &= ~0x08 & 0xFF
    path.write_bytes(bytes(data))
    with open_package(path) as package:
        assert package.names() == ["aufgabe-ü.in"]


def test_invalid_archive_and_missing_path(tmp_path: Path) -> None:
    broken = tmp_path / "p.zip"
    broken.write_bytes(b"PK\x03\x04 not really")
    assert "not a valid ZIP" in _refusal(broken)
    with pytest.raises(NotFound), open_package(tmp_path / "nothing"):
        pass


def test_temporary_files_are_deleted(tmp_path: Path) -> None:
    path = _zip(tmp_path / "p.zip", [("a.in", b"1")])
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    with open_package(path, scratch=scratch) as package:
        package.put_derived("b", b"2")
        assert list(scratch.iterdir())
    assert not list(scratch.iterdir())


def test_executable_bits_are_kept(tmp_path: Path) -> None:
    with open_package(_zip(tmp_path / "p.zip", [("build", b"#!")], mode=stat.S_IFREG | 0o755)) as package:
        assert os.access(package.locate("build"), os.X_OK)
