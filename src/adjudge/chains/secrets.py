"""Named secrets: how they are encrypted, referred to in a cfg, and kept out of everything that is written down.

A cfg refers to one as ``{{ secrets.NAME }}``, in the fields that its executor names as ``secret_fields``. The value is
decrypted by the worker that runs the node and by nobody else, and is replaced by ``***`` in what the node leaves
behind: artifact, checkpoint, log lines and errors.
"""

from __future__ import annotations

import base64
import json
import os
import re
import tempfile
from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

from cryptography.fernet import Fernet, InvalidToken, MultiFernet

from adjudge.chains.templating import references
from adjudge.domain.errors import AdjudgeError, InvalidInput, NodeFailed, NodeRefused, Unavailable

SECRETS: Final = "secrets"
HIDDEN: Final = "***"
VALUE_MIN: Final = 8
"""Shorter values could not be distinguished from ordinary text where they are hidden."""
VALUE_MAX: Final = 8_192
_CREDENTIALS: Final = frozenset({"authorization", "cookie", "proxy-authorization", "x-api-key"})
_PASSWORD: Final = re.compile(r"[a-z]+://[^/@{}]*:[^/@{}]+@")
_NAME: Final = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,63}")


def check_name(name: str) -> str:
    """A name that templates can spell."""
    if not _NAME.fullmatch(name):
        raise InvalidInput("name: use 1 to 64 letters, digits and _, the first a letter.", field="name")
    return name


def check_value(value: str) -> str:
    """A value that can be sent, and hidden where it is repeated."""
    if not VALUE_MIN <= len(value) <= VALUE_MAX or "\0" in value:
        raise InvalidInput(
            f"value: use {VALUE_MIN} to {VALUE_MAX} characters without a zero byte; shorter ones cannot be hidden.",
            field="value",
        )
    return value


@dataclass(frozen=True, slots=True)
class Keyring:
    """The keys that secrets are encrypted with, the newest first: those of a setting, else those of a file.

    The file is read whenever a key is needed, so a rotation needs no restart.
    """

    path: Path
    given: str = ""

    @classmethod
    def of(cls, data_dir: Path, given: str) -> Keyring:
        """The keys of an installation: those that its settings give, else those of its data folder."""
        return cls(data_dir / "secrets.key", given)

    def encrypt(self, name: str, value: str) -> str:
        """Encrypt a value together with its name, so that rows cannot be exchanged."""
        return self._keys(makes=True).encrypt(json.dumps([name, value]).encode()).decode()

    def decrypt(self, name: str, ciphertext: str) -> str:
        """The value of a secret, if a key is here that it was encrypted with."""
        try:
            found, value = json.loads(self._keys().decrypt(ciphertext))
        except InvalidToken:
            raise Unavailable(f"The secret {name!r} was encrypted with a key that is not here.") from None
        if found != name:
            raise Unavailable(f"The secret {name!r} is not what was encrypted under that name.")
        return str(value)

    def fresh(self, ciphertext: str) -> str:
        """The same value, encrypted with the newest key."""
        try:
            return self._keys().rotate(ciphertext.encode()).decode()
        except InvalidToken:
            raise Unavailable("A secret was encrypted with a key that is not here.") from None

    def is_newest(self, ciphertext: str) -> bool:
        """Whether a value was encrypted with the newest key."""
        try:
            Fernet(self._list()[0]).decrypt(ciphertext)
        except InvalidToken:
            return False
        return True

    def add_key(self) -> None:
        """Make a new key the newest of the file."""
        if self.given:
            raise InvalidInput(
                "chains.secret_keys: the keys come from this setting; put a new one before the others there, and start "
                "every role again.",
                field="chains.secret_keys",
            )
        known = self._lines() if self.path.exists() else []
        self._write([Fernet.generate_key().decode(), *known])

    def forget_old_keys(self) -> None:
        """Keep the newest key of the file alone, once everything is encrypted with it."""
        if not self.given:
            self._write(self._lines()[:1])

    def _keys(self, *, makes: bool = False) -> MultiFernet:
        if not self.given and makes and not self.path.exists():
            self._create()
        try:
            return MultiFernet([Fernet(line) for line in self._list()])
        except ValueError:
            where = "chains.secret_keys" if self.given else str(self.path)
            raise InvalidInput(
                f"{where}: each key must be 32 bytes in URL-safe base64, as `adjudge secret key` prints.",
                field="chains.secret_keys",
            ) from None

    def _list(self) -> list[str]:
        """The keys, the newest first."""
        return [item.strip() for item in self.given.split(",") if item.strip()] if self.given else self._lines()

    def _lines(self) -> list[str]:
        try:
            return self.path.read_text(encoding="ascii").split()
        except OSError as error:
            raise Unavailable(
                f"{self.path}: the key of secrets cannot be read ({error.strerror}); copy it here from the machine "
                "that made it, or give it by the setting chains.secret_keys."
            ) from None

    def _create(self) -> None:
        """Make the first key; should two processes do so at once, the first one's counts.

        The file gets its name only once it is complete: nobody may read an empty one.
        """
        self.path.parent.mkdir(parents=True, exist_ok=True)
        handle, fresh = tempfile.mkstemp(prefix=f".{self.path.name}-", dir=self.path.parent)  # mode 0600
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(Fernet.generate_key() + b"\n")
                file.flush()
                os.fsync(file.fileno())
            with suppress(FileExistsError):
                os.link(fresh, self.path)
        finally:
            Path(fresh).unlink()

    def _write(self, keys: Iterable[str]) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        fresh = self.path.with_suffix(".new")
        handle = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(handle, "w") as file:
            file.write("".join(f"{key}\n" for key in keys))
            file.flush()
            os.fsync(file.fileno())
        fresh.replace(self.path)


def new_key() -> str:
    return Fernet.generate_key().decode()


def names_in(cfg: Any) -> set[str]:
    return {str(item.path[1]) for item in references(cfg) if item.path[0] == SECRETS and len(item.path) > 1}


def used_by(dag: Mapping[str, Any]) -> set[str]:
    nodes = dag.get("nodes", [])
    return set[str]().union(*(names_in(node.get("cfg", {})) for node in nodes if isinstance(node, Mapping)))


def misplaced(cfg: Any, allowed: Collection[str], place: str = "cfg") -> Iterable[str]:
    """Say what is wrong with the references to secrets in a cfg."""
    for item in references(cfg, place):
        if item.path[0] != SECRETS:
            continue
        field = item.place.removeprefix(f"{place}.").split(".")[0].split("[")[0]
        if field not in allowed:
            fields = ", ".join(sorted(allowed))
            yield f"{item.place}: secrets cannot be used here" + (f"; only in {fields}" if fields else "")
        elif len(item.path) != 2 or not _NAME.fullmatch(str(item.path[1])):
            yield f"{item.place}: write secrets.NAME"


def literal_credentials(cfg: Mapping[str, Any], allowed: Collection[str]) -> Iterable[str]:
    """Name credentials that stand in a definition as they are, where everybody with chain:read would read them."""
    headers = cfg.get("headers") if "headers" in allowed else None
    for name, value in headers.items() if isinstance(headers, Mapping) else ():
        if str(name).lower() in _CREDENTIALS and "{{" not in str(value):
            yield f"cfg.headers.{name}: visible with chain:read; set a secret and write {{{{ secrets.NAME }}}}"
    url = cfg.get("url") if "url" in allowed else None
    if isinstance(url, str) and _PASSWORD.match(url):
        yield "cfg.url: its password is visible with chain:read; set a secret and send it in a header"


@dataclass(frozen=True, slots=True)
class Redaction:
    """Hides the values of the secrets that a node was given."""

    values: tuple[str, ...] = ()

    def text(self, text: str) -> str:
        """The text without them, however they were written into it."""
        for value in self._spellings():
            text = text.replace(value, HIDDEN)
        return text

    def document(self, found: Any) -> Any:
        """The JSON value without them."""
        if not self.values:
            return found
        if isinstance(found, str):
            return self.text(found)
        if isinstance(found, Mapping):
            return {self.text(str(key)): self.document(item) for key, item in found.items()}
        if isinstance(found, list | tuple):
            return [self.document(item) for item in found]
        return found

    def error(self, error: Exception) -> Exception:
        """An error of the same meaning without them."""
        if not isinstance(error, AdjudgeError):
            return NodeFailed(self.text(f"{type(error).__name__}: {error}"))
        error.message = self.text(error.message)
        error.fields = {name: self.document(value) for name, value in error.fields.items()}
        error.args = (error.message,)
        return error

    def _spellings(self) -> list[str]:
        found = set[str]()
        for value in self.values:
            found |= {value, quote(value), quote(value, safe=""), json.dumps(value)[1:-1]}
            found |= {base64.b64encode(value.encode()).decode(), base64.urlsafe_b64encode(value.encode()).decode()}
        return sorted(found, key=len, reverse=True)


def refuse_missing(wanted: Collection[str], found: Mapping[str, str]) -> None:
    """Refuse a node that refers to a secret that is not there."""
    missing = sorted(set(wanted) - set(found))
    if missing:
        raise NodeRefused(f"There is no secret {missing[0]!r}; an operator sets it with `adjudge secret set`.")
