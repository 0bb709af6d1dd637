"""Connection of commands to a server: stored logins, choice of the server, error output."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

import click

from adjudge.cli import EXIT_BAD_INPUT, EXIT_INTERNAL_ERROR
from adjudge.client import ApiError, AuthenticationError, Client, ClientError
from adjudge.domain.errors import InvalidInput

_FILE: Final = "logins.json"
_MODE: Final = 0o600


@dataclass(frozen=True, slots=True)
class SavedLogin:
    """The stored token of a server."""

    token: str
    token_id: str = ""
    """Set if `adjudge login` created the token, so that logout can revoke it."""


class LoginStore:
    """Stored logins: server URL → token, in a file readable by its owner only. The latest login comes first."""

    def __init__(self, folder: Path | None = None) -> None:
        self._path = (folder or Path(click.get_app_dir("adjudge"))) / _FILE

    def all(self) -> dict[str, SavedLogin]:
        try:
            kept = json.loads(self._path.read_text(encoding="utf-8"))
            return {url: SavedLogin(**login) for url, login in kept.items()}
        except FileNotFoundError:
            return {}
        except (ValueError, TypeError, AttributeError):
            raise InvalidInput(f"{self._path}: invalid file; delete it and log in again.", field="login") from None

    def put(self, url: str, login: SavedLogin) -> None:
        self._write({url: login} | {known: kept for known, kept in self.all().items() if known != url})

    def drop(self, url: str) -> None:
        self._write({known: login for known, login in self.all().items() if known != url})

    def find(self, server: str | None) -> tuple[str, SavedLogin]:
        """The login of ``server``, or the default login."""
        known = self.all()
        url = normalize_url(server) if server else next(iter(known), "")
        if url not in known:
            where = url or "URL"
            raise InvalidInput(f"Not logged in{f' to {url}' if url else ''}: run `adjudge login {where}` first.")
        return url, known[url]

    def _write(self, logins: dict[str, SavedLogin]) -> None:
        self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        fresh = self._path.with_suffix(".new")
        fresh.unlink(missing_ok=True)
        descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, _MODE)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            json.dump({url: asdict(login) for url, login in logins.items()}, file, indent=2)
        fresh.replace(self._path)


def normalize_url(url: str) -> str:
    whole = url if "://" in url else f"https://{url}"
    if not whole.startswith(("http://", "https://")):
        raise InvalidInput(f"{url!r}: invalid server URL; it must start with https:// or http://.", field="server")
    return whole.rstrip("/")


@contextmanager
def open_client(server: str | None) -> Iterator[Client]:
    """A client of the chosen server; API errors end the command."""
    url, login = LoginStore().find(server)
    with report_api_errors(url), Client(url, login.token) as client:
        yield client


@contextmanager
def report_api_errors(url: str) -> Iterator[None]:
    """Print API errors, one line per invalid field, and exit."""
    try:
        yield
    except ApiError as error:
        for wrong in error.refusal.errors:
            click.echo(f"  {wrong.get('field', '')}: {wrong.get('message', '')}", err=True)
        click.echo(f"adjudge: {_summary(error)} [{error.code}]", err=True)
        if isinstance(error, AuthenticationError) and error.code != "LOGIN_FAILED":
            click.echo(f"adjudge: login expired; run `adjudge login {url}`.", err=True)
        if error.status >= 500:
            click.echo(f"adjudge: request ID for the server log: {error.request_id}", err=True)
        raise click.exceptions.Exit(EXIT_BAD_INPUT if error.status < 500 else EXIT_INTERNAL_ERROR) from error
    except ClientError as error:
        click.echo(f"adjudge: {url}: {error}", err=True)
        raise click.exceptions.Exit(EXIT_INTERNAL_ERROR) from error


def _summary(error: ApiError) -> str:
    """The error message, or the number of errors if they were printed line by line."""
    wrong = len(error.refusal.errors)
    return error.detail if not wrong else f"{wrong} {'error' if wrong == 1 else 'errors'}"
