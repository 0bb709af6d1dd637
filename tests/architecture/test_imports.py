"""Who may import whom, and why. Reads the syntax of every file, imports inside functions included."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

ENVIRONMENT = {"environ", "environb", "getenv", "getenvb"}
SOURCE = Path(__file__).resolve().parents[2] / "src" / "adjudge"


@dataclass(frozen=True, slots=True)
class Import:
    """One import: the package and the line that import, and the imported module."""

    package: str
    location: str
    target: str


LAYERS: tuple[frozenset[str], ...] = (
    frozenset({"domain"}),
    frozenset({"concurrency", "schema"}),
    frozenset({"store", "stream", "blobs", "registry", "cache", "sandbox", "client"}),
    frozenset({"chains", "judge", "contests", "packages"}),
    frozenset({"evaluation"}),
    frozenset({"services"}),
    frozenset({"api", "web", "worker", "relay", "executors"}),
    frozenset({"cli"}),
)
"""From the ground up. A package imports from lower layers and from itself: then no cycle can form, a package can be
understood with what is below it alone, and a driver can be replaced without touching what uses it. ``concurrency`` is
below the drivers because they batch as well (notifications), and knows nothing of what it batches. ``schema`` is below
``client`` and ``api``, which share the response models: so the client decodes what the server encodes and does not
import the server."""

WITHIN_A_LAYER: dict[tuple[str, str], str] = {
    ("registry", "store"): "its database driver keeps its rows through `store`, which has all SQL",
    ("web", "api"): "pages belong to the same server: authentication and permissions are implemented once",
    ("cache", "store"): "revisions of what is cached are rows, bumped by the writes themselves",
    ("cache", "stream"): "one Redis: stream.link says how it is reached and what its failures mean",
    ("packages", "judge"): "making and verifying a package runs the jury's programs; the judge knows no package",
}
"""Pairs (importer, imported) of one layer that are allowed all the same, each with its reason."""

NEVER: dict[str, tuple[frozenset[str], str]] = {
    "judge": (
        frozenset({"store", "stream", "registry", "cache", "blobs", "client"}),
        "judging depends on its inputs alone, so that the command line judges as workers do",
    ),
    "sandbox": (
        frozenset({"store", "stream", "registry", "cache", "blobs", "client"}),
        "running a program needs this machine and nothing else",
    ),
    "contests": (
        frozenset({"stream", "registry", "cache", "blobs", "sandbox", "client", "chains", "judge", "packages"}),
        "scoring depends on rows alone: it imports domain and store",
    ),
}
"""Package → packages of lower layers, or of its own, that it must not import all the same, and why."""

FREE_PACKAGES = frozenset({"observe"})
"""Logs and metrics say what happened anywhere; they import no package, so they cannot tie packages together."""

SETTINGS_READERS: dict[str, str] = {
    "cli": "composes the system from settings",
    "api": "composition code of the server may read them",
    "services": "a service takes its own section of the settings as a value",
    "settings": "itself",
}
"""Everyone else gets plain values passed in: a package that reads settings cannot be tested or simulated on its own."""

LIBRARY_RULES: dict[str, tuple[frozenset[str], str]] = {
    "sqlalchemy": (frozenset({"store"}), "SQL lives in one package"),
    "asyncpg": (frozenset({"store"}), "SQL lives in one package"),
    "sqlite3": (frozenset({"store"}), "SQL lives in one package"),
    "alembic": (frozenset({"store"}), "the schema changes in one package"),
    "redis": (frozenset({"stream", "cache"}), "Redis drives and remembers; it never decides"),
    "fastapi": (frozenset({"api", "web"}), "HTTP is the outermost layer; nothing below it imports it"),
    "starlette": (frozenset({"api", "web"}), "HTTP is the outermost layer; nothing below it imports it"),
    "uvicorn": (frozenset({"cli"}), "serving is composition"),
    "uvloop": (frozenset({"cli"}), "the loop is chosen where the process is composed"),
    "click": (frozenset({"cli"}), "only the command line talks to a terminal"),
    "rich": (frozenset({"cli"}), "only the command line talks to a terminal"),
    "pydantic": (frozenset({"api", "web"}), "wire models stay on the wire; values inside are dataclasses"),
    "prometheus_client": (frozenset({"observe"}), "each metric is declared once"),
    "jinja2": (frozenset({"web"}), "templates are pages"),
    "latex2mathml": (frozenset({"web"}), "maths is drawn on pages"),
    "markupsafe": (frozenset({"web"}), "templates are pages"),
    "argon2": (frozenset({"services"}), "passwords are checked in one module, off the loop"),
    "joserfc": (frozenset({"services"}), "another provider's word is believed in one module"),
    "obstore": (frozenset({"blobs"}), "files are read and written as blobs, wherever they are stored"),
    "httpx": (
        frozenset({"services", "registry", "client", "worker"}),
        "etcd; outgoing calls of nodes and webhooks; OpenID Connect; and the client, which calls servers",
    ),
    "yaml": (frozenset({"packages", "chains"}), "YAML is a format of problem packages and of shipped chains"),
    "markdown_it": (frozenset({"packages"}), "statements become pages in one package"),
    "nh3": (frozenset({"packages"}), "statements become harmless in one package"),
    "jsonschema": (frozenset({"chains"}), "executors describe their cfg by schemas"),
    "cronsim": (frozenset({"chains"}), "times of day are a trigger's business"),
}
"""Library → the packages that may import it, and why."""


@cache
def nodes() -> list[tuple[Path, ast.Import | ast.ImportFrom | ast.Attribute]]:
    """What matters here of every file's syntax; read when the first test asks, not when tests are collected."""
    return [
        (path.relative_to(SOURCE), node)
        for path in sorted(SOURCE.rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_bytes()))
        if isinstance(node, ast.Import | ast.ImportFrom)
        or (isinstance(node, ast.Attribute) and node.attr in ENVIRONMENT)
    ]


@cache
def all_imports() -> list[Import]:
    return [*_imports()]


@cache
def between_packages() -> list[tuple[Import, str]]:
    return [
        (item, package) for item in all_imports() if (package := _package_of(item.target)) and package != item.package
    ]


def _imports() -> Iterator[Import]:
    for relative, node in nodes():
        package = relative.parts[0] if len(relative.parts) > 1 else relative.stem
        for target in _targets(node, relative):
            yield Import(package, f"{relative}:{node.lineno}", target)


def _targets(node: ast.AST, relative: Path) -> list[str]:
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if not isinstance(node, ast.ImportFrom):
        return []
    module = node.module or ""
    if node.level:
        parents = ("adjudge", *relative.parent.parts)
        base = ".".join(parents[: len(parents) - node.level + 1])
        module = f"{base}.{module}".rstrip(".")
    return [f"{module}.{alias.name}" for alias in node.names] if module == "adjudge" else [module]


def _package_of(target: str) -> str | None:
    parts = target.split(".")
    return parts[1] if parts[0] == "adjudge" and len(parts) > 1 else None


def _layer(package: str) -> int | None:
    return next((height for height, packages in enumerate(LAYERS) if package in packages), None)


def test_every_package_has_a_layer() -> None:
    known = frozenset().union(*LAYERS) | FREE_PACKAGES | {"settings", "__init__", "__main__"}
    assert {item.package for item in all_imports()} <= known


def test_imports_go_down_only() -> None:
    wrong = []
    for item, target in between_packages():
        mine, theirs = _layer(item.package), _layer(target)
        if mine is None or theirs is None or (item.package, target) in WITHIN_A_LAYER:
            continue
        if theirs >= mine:
            wrong.append(f"{item.location}: {item.package} may not import {target}")
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("package", sorted(NEVER))
def test_packages_do_not_import_what_they_must_not_depend_on(package: str) -> None:
    forbidden, reason = NEVER[package]
    wrong = [item.location for item, target in between_packages() if item.package == package and target in forbidden]
    assert not wrong, f"{package} may not import {', '.join(sorted(forbidden))}: {reason}: {wrong}"
    assert [item for item in all_imports() if item.package == package], "the package exists"


def test_domain_is_standard_library_only() -> None:
    outside = [
        f"{item.location}: {item.target}"
        for item in all_imports()
        if item.package == "domain" and item.target.split(".")[0] not in {*sys.stdlib_module_names, "adjudge"}
    ]
    assert not outside, "rules must be readable and testable with nothing installed:\n" + "\n".join(outside)
    assert not [item.location for item, package in between_packages() if item.package == "domain"]


def test_the_client_carries_no_server_with_it() -> None:
    """A program that submits should import neither a judge nor a database; nor pydantic, with the shared models."""
    own = [item for item in all_imports() if item.package in {"client", "schema"}]
    outside = {item.target.split(".")[0] for item in own} - {*sys.stdlib_module_names, "adjudge"}
    assert outside == {"httpx"}
    assert {package for item, package in between_packages() if item.package == "client"} <= {
        "domain",
        "schema",
        "__version__",
    }
    assert {package for item, package in between_packages() if item.package == "schema"} == {"domain"}


def test_observe_imports_no_package() -> None:
    assert not [f"{item.location}: {item.target}" for item, _ in between_packages() if item.package in FREE_PACKAGES]


def test_settings_are_read_by_composition_code_only() -> None:
    wrong = [
        item.location
        for item, package in between_packages()
        if package == "settings" and item.package not in SETTINGS_READERS
    ]
    assert not wrong
    assert {package for item, package in between_packages() if item.package == "settings"} <= {"domain"}


@pytest.mark.parametrize("package", sorted(LIBRARY_RULES))
def test_third_party_packages_are_imported_only_where_allowed(package: str) -> None:
    packages, reason = LIBRARY_RULES[package]
    wrong = [
        item.location for item in all_imports() if item.target.split(".")[0] == package and item.package not in packages
    ]
    assert not wrong, f"{package} belongs to {', '.join(sorted(packages))} ({reason}): {wrong}"


ENVIRONMENT_READERS: dict[str, str] = {
    "sandbox/launcher.py": "asks the system where run-time files go, as tempfile does; it is no setting of ours",
}
"""Files outside of settings that may look at the environment, and why."""


def test_only_settings_read_the_environment() -> None:
    readers = [
        f"{relative}:{node.lineno}"
        for relative, node in nodes()
        if isinstance(node, ast.Attribute)
        if relative.parts[0] != "settings" and str(relative) not in ENVIRONMENT_READERS
    ]
    assert not readers, "a value that settings do not know of cannot be shown by `adjudge config`"


def test_commands_keep_their_imports_to_themselves() -> None:
    """``adjudge judge`` must not pay for the web server: a command imports no other command."""
    wrong = [
        item.location
        for item in all_imports()
        if item.package == "cli" and item.target.startswith("adjudge.cli.") and "__init__" in item.location
    ]
    assert not wrong
