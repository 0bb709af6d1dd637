"""``adjudge problem check`` and ``show``: validate a package and print its parsed contents."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click
from rich.table import Table

from adjudge.cli.options import follow_links_option
from adjudge.cli.output import make_console
from adjudge.packages.archive import Links, open_package
from adjudge.packages.findings import Finding, Findings, PackageRefused, Severity
from adjudge.packages.load import Package, check_test_files, default_name, load_package, read_package
from adjudge.packages.manifest import manifest, revision_digest
from adjudge.packages.problem_json import encode, problem_to_json

EXIT_FOUND_ERRORS = 1
_SOURCE = click.argument("source", type=click.Path(exists=True, path_type=Path), metavar="SRC")
_JSON = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
_COLOURS = {Severity.ERROR: "red", Severity.WARNING: "yellow", Severity.INFO: "cyan"}


@click.command()
@_SOURCE
@_JSON
@follow_links_option
def check(source: Path, as_json: bool, links: Links) -> None:
    """Validate the format of a package and list all findings.

    Exit codes: 0 valid, 1 errors found.
    """
    findings = Findings()
    try:
        with open_package(source, links=links) as files:
            package = read_package(files, default_name(source), findings)
            check_test_files(package, findings)
    except PackageRefused as refusal:
        findings.items.extend(item for item in refusal.findings if item not in findings.items)
    if as_json:
        click.echo(json.dumps({"ok": not findings.has_errors, "findings": encode(findings.in_order())}, indent=2))
    else:
        print_findings(findings.in_order())
        click.echo("Errors found." if findings.has_errors else "No errors.")
    if findings.has_errors:
        raise click.exceptions.Exit(EXIT_FOUND_ERRORS)


@click.command()
@_SOURCE
@_JSON
@follow_links_option
def show(source: Path, as_json: bool, links: Links) -> None:
    """Show the parsed contents of a package."""
    with load_package(source, links=links) as package:
        if as_json:
            click.echo(json.dumps(_document(package), indent=2, ensure_ascii=False))
        else:
            _print_summary(package)


def _document(package: Package) -> dict[str, Any]:
    """Describe a package; one whose tests are still to be made has no revision yet."""
    document = problem_to_json(package.problem)
    document["findings"] = encode(package.findings)
    document["to_be_made"] = [recipe.target for recipe in package.generated_files]
    if not package.generated_files:
        document["revision"] = revision_digest(package.problem, package.files)
        document["manifest"] = encode(manifest(package.problem, package.files))
    return document


def print_findings(findings: tuple[Finding, ...]) -> None:
    """Print findings in the format of compilers."""
    for item in findings:
        click.secho(str(item), fg=_COLOURS[item.severity], err=False)


def _print_summary(package: Package) -> None:
    problem = package.problem
    console = make_console()
    facts = Table(show_header=False, box=None, pad_edge=False)
    limits = problem.limits.run
    known = "" if problem.limits.has_explicit_time_limit else " (default; not set in the package)"
    checker = problem.checker.native if problem.checker.protocol == "native" else problem.checker.protocol
    rows = {
        "name": problem.short_name,
        "title": problem.title,
        "format": f"{problem.package_format.format} {problem.package_format.version}".strip(),
        "kind": f"{problem.grading}, {problem.mode}" + (f", {problem.max_passes} passes" * (problem.max_passes > 1)),
        "time limit": f"{limits.cpu_ms} ms{known}",
        "memory limit": f"{limits.memory_bytes // (1024 * 1024)} MiB",
        "checker": " ".join((checker, *problem.checker.args)),
        "tests": f"{len(problem.cases)} ({sum(case.is_sample for case in problem.cases)} samples)",
        "jury solutions": str(len(problem.submissions)),
        "statements": ", ".join(f"{item.language}.{item.format}" for item in problem.statements) or "none",
        "to be generated": str(len(package.generated_files)) if package.generated_files else "",
        "revision": "" if package.generated_files else revision_digest(problem, package.files),
    }
    for name, value in rows.items():
        if value:
            facts.add_row(f"[bold]{name}[/]", value)
    console.print(facts)
    groups = Table("group", "tests", "points", "scoring", "depends on")
    for group in problem.groups:
        count = sum(case.group == group.path for case in problem.cases)
        points = "" if group.max_points is None else f"{group.max_points:g}"
        if count or points:
            groups.add_row(group.path or "/", str(count), points, group.aggregate, ", ".join(group.depends_on))
    console.print(groups)
    print_findings(package.findings)
