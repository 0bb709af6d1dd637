"""``adjudge secret`` against a real server."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from adjudge.chains.secrets import Keyring
from adjudge.cli import main
from adjudge.domain.errors import Unavailable
from adjudge.domain.permissions import Role
from adjudge.services.secrets import keyring
from adjudge.services.users import UserSpec
from adjudge.store.chains import secrets
from tests.support.http_server import RunningServer

pytestmark = pytest.mark.slow
PASSWORD = "correct horse battery"
VALUE = "correct-horse\nbattery ünd"


def run(*argv: str, given: str = "") -> Result:
    return CliRunner().invoke(main, ["secret", *argv], input=given)


@pytest.fixture
def admin(server: RunningServer, sqlite_url: str, monkeypatch: pytest.MonkeyPatch) -> RunningServer:
    """A server whose database and data folder are those of this machine's settings, and an admin logged in there."""
    monkeypatch.setenv("ADJUDGE_DATABASE_URL", sqlite_url)
    monkeypatch.setenv("ADJUDGE_DATA_DIR", str(server.api.services.settings.server.data_dir))
    order = UserSpec("ada", Role.ADMIN, None, password=PASSWORD, must_change_password=False)
    server.do(server.api.services.users.create_user(order, actor="test"))
    login = CliRunner().invoke(main, ["login", server.url, "--name", "ada"], input=f"{PASSWORD}\n")
    assert login.exit_code == 0, login.output
    return server


def values(server: RunningServer, keys: Keyring | None = None) -> dict[str, str]:
    """What nodes are given: every secret, decrypted with the keys that are here now."""
    found = server.do(server.api.services.ops.database.read(secrets.read_all))
    keys = keys or keyring(server.api.services.settings)
    return {name: keys.decrypt(name, ciphertext) for name, ciphertext in found.items()}


def test_secrets_are_set_from_standard_input_listed_and_deleted(admin: RunningServer) -> None:
    assert run("list").output == "No secrets.\n"
    assert run("set", "CI_TOKEN", given=f"{VALUE}\r\n").output == "CI_TOKEN: set\n"
    assert values(admin) == {"CI_TOKEN": VALUE}, "the newline at the end is not part of it"
    assert run("set", "CI_TOKEN", given=f"{VALUE}-2").exit_code == 0
    assert values(admin) == {"CI_TOKEN": f"{VALUE}-2"}
    listed = run("list").output
    assert "CI_TOKEN" in listed
    assert "ada" in listed
    assert "correct-horse" not in listed
    assert run("delete", "CI_TOKEN").output == "CI_TOKEN: deleted\n"
    gone = run("delete", "CI_TOKEN")
    assert (gone.exit_code, "CI_TOKEN" in gone.output) == (3, True)


@pytest.mark.parametrize(
    ("name", "given", "word"),
    [("a-b", VALUE, "letters, digits and _"), ("CI_TOKEN", "short-1\n", "8 to 8192"), ("CI_TOKEN", "", "8 to 8192")],
)
def test_invalid_names_and_values_are_rejected_and_not_printed(
    admin: RunningServer, name: str, given: str, word: str
) -> None:
    refused = run("set", name, given=given)
    assert (refused.exit_code, word in refused.output) == (3, True), refused.output
    assert not given.strip() or given.strip() not in refused.output
    assert values(admin) == {}


def test_rotation_encrypts_all_secrets_and_removes_the_old_key(admin: RunningServer, tmp_path: Path) -> None:
    path = admin.api.services.settings.server.data_dir / "secrets.key"
    for name in ("A", "B"):
        run("set", name, given=f"{name}-{VALUE}")
    old = tmp_path / "old.key"
    old.write_text(path.read_text())
    before = values(admin)
    rotated = run("rotate")
    assert rotated.output == "secrets encrypted with the new key: 2\n"
    assert values(admin) == before, "the server that runs reads the new key without being started again"
    assert len(path.read_text().split()) == 1
    assert path.read_text() != old.read_text()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    with pytest.raises(Unavailable, match="a key that is not here"):
        values(admin, Keyring(old))


def test_rotation_uses_the_first_key_of_the_setting(admin: RunningServer, monkeypatch: pytest.MonkeyPatch) -> None:
    path = admin.api.services.settings.server.data_dir / "secrets.key"
    run("set", "A", given=VALUE)
    old, new = path.read_text().strip(), run("key").output.strip()
    monkeypatch.setenv("ADJUDGE_CHAINS_SECRET_KEYS", f"{new},{old}")
    assert run("rotate").output == "secrets encrypted with the new key: 1\n"
    assert values(admin, Keyring(path, new)) == {"A": VALUE}, "the old key is not needed any more"
    assert path.read_text().strip() == old, "a file that is not in use stays as it is"


def test_rotation_without_the_key_changes_nothing(admin: RunningServer) -> None:
    path = admin.api.services.settings.server.data_dir / "secrets.key"
    run("set", "A", given=VALUE)
    kept = path.read_text()
    path.unlink()
    refused = run("rotate")
    assert (refused.exit_code != 0, "the key of secrets cannot be read" in refused.output) == (True, True)
    assert not path.exists(), "no key is made that would hide that the right one is missing"
    path.write_text(kept)
    assert values(admin) == {"A": VALUE}


def test_invalid_key_is_rejected(admin: RunningServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ADJUDGE_CHAINS_SECRET_KEYS", "no key")
    run("set", "A", given=VALUE)
    refused = run("rotate")
    assert (refused.exit_code, "as `adjudge secret key` prints" in refused.output) == (3, True)
