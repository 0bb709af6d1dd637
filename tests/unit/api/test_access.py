"""Every route, asked by every role and by nobody, against one table of who may do what."""

from __future__ import annotations

import importlib
import pkgutil
import re
from collections import Counter
from pathlib import Path

import pytest
from fastapi import FastAPI, routing
from fastapi.responses import Response

from adjudge.api.app import OPENAPI_PATH
from adjudge.api.routing import API_ROOT
from adjudge.domain.ids import new_id
from adjudge.domain.permissions import ROLE_PERMISSIONS, Permission, Role
from tests.support.asgi_app import AsgiApp
from tests.unit.api import access_tables

Table = dict[tuple[str, str], set[str] | str]


def tables() -> dict[str, Table]:
    folder = Path(access_tables.__file__).parent
    names = [module.name for module in pkgutil.iter_modules([str(folder)])]
    return {name: importlib.import_module(f"tests.unit.api.access_tables.{name}").ROUTES for name in names}


def asked(app: FastAPI) -> set[tuple[str, str]]:
    found = set()
    for route in routing.iter_route_contexts(app.routes):
        if isinstance(route.original_route, routing.APIRoute):
            found |= {(method, str(route.path)) for method in route.methods or ()}
        else:
            assert route.path in (OPENAPI_PATH, f"{API_ROOT}/submissions"), (
                f"{route.path} is a route that this test cannot ask"
            )
    return found


async def test_every_route_lets_in_whom_the_table_says_and_nobody_else(
    api: AsgiApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who comes through meets a stub: this is about the door, what happens behind it is the areas' own tests."""
    table = {key: roles for rows in tables().values() for key, roles in rows.items()}

    async def reached(**_: object) -> Response:
        return Response(status_code=299)

    monkeypatch.setattr(routing, "run_endpoint_function", reached)
    wrong = []
    callers = {"nobody": None} | {role.value: (await api.user(role))[1] for role in Role}
    for caller, token in callers.items():
        async with api.client(token) as client:
            for method, path in sorted(asked(api.app)):
                allowed = table.get((method, path), set())
                answer = await client.request(method, re.sub(r"\{[^}]*\}", new_id(), path))
                expected = allowed == "open" or caller in allowed
                refusal = 401 if caller == "nobody" else 403
                as_expected = answer.status_code in (299, 400) if expected else answer.status_code == refusal
                if not as_expected:
                    wrong.append(f"{method} {path} as {caller}: {answer.status_code}, and the table says {allowed}")
    assert not wrong, "\n".join(wrong)


async def test_every_route_stands_in_one_table(api: AsgiApp) -> None:
    listed = Counter(key for rows in tables().values() for key in rows)
    assert set(listed) - asked(api.app) == set(), "the table speaks of routes that are not there"
    assert asked(api.app) - set(listed) == set(), "these routes are in no table: say who may use them"
    assert [key for key, times in listed.items() if times > 1] == []


def test_every_permission_is_some_roles_and_admins_have_all() -> None:
    assert ROLE_PERMISSIONS[Role.ADMIN] == frozenset(Permission)
    assert set(ROLE_PERMISSIONS) == set(Role)
