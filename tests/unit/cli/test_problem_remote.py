"""``adjudge problem upload``: which files of a folder are sent."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path

import pytest

from adjudge.cli.problem_remote import zip_package
from adjudge.packages.archive import Links
from adjudge.packages.findings import PackageRefused


def test_folder_is_sent_with_the_targets_of_its_links(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / "shared").mkdir()
    (tmp_path / "shared" / "1.in").write_text("1")
    package = tmp_path / "sum"
    package.mkdir()
    (package / "problem.yaml").write_text("name: Sum\n")
    (package / "data").symlink_to("../shared")
    with zipfile.ZipFile(io.BytesIO(zip_package(package, Links.REPOSITORY))) as archive:
        assert sorted(archive.namelist()) == ["data/1.in", "problem.yaml"]
        assert archive.read("data/1.in") == b"1"


def test_link_out_of_the_repository_is_not_sent(tmp_path: Path) -> None:
    package = tmp_path / "sum"
    package.mkdir()
    (tmp_path / "private").write_text("a key")
    (package / "readme").symlink_to("../private")
    with pytest.raises(PackageRefused, match="leaves the package"):
        zip_package(package, Links.REPOSITORY)
