"""Which format a package is in."""

from __future__ import annotations

from adjudge.packages.files import PackageFiles
from adjudge.packages.findings import package_error
from adjudge.packages.plain import has_tests

FORMATS = ("icpc", "polygon", "dmoj", "cms", "plain")


def detect(files: PackageFiles) -> str:
    """Name the format by the one file that each has; refuse what is none, saying what was looked for."""
    if "problem.xml" in files:
        return "polygon"
    if "init.yml" in files:
        return "dmoj"
    if "problem.yaml" in files or "domjudge-problem.ini" in files or files.has_folder("data/secret"):
        return "icpc"
    if "task.yaml" in files or (files.has_folder("input") and files.has_folder("output")):
        return "cms"
    if has_tests(files):
        return "plain"
    raise package_error(
        "",
        "Unknown package format.",
        "It needs problem.yaml (ICPC), problem.xml (Polygon), init.yml (DMOJ), task.yaml (CMS) or pairs of .in/.out.",
    )
