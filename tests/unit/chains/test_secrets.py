"""Named secrets: keys, what is encrypted, where they may be referred to, and what is hidden."""

from __future__ import annotations

import base64
import os
import stat
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from adjudge.chains import executor_registry
from adjudge.chains.dag_cache import check_dag
from adjudge.chains.secrets import HIDDEN, Keyring, Redaction, check_name, check_value, names_in, new_key, used_by
from adjudge.domain.errors import InvalidInput, NodeFailed, Unavailable

VALUE = 'p4ss word"+/ü'


def http(**cfg: Any) -> dict[str, Any]:
    return {"nodes": [{"id": "a", "type": "http", "cfg": {"url": "https://example.org", **cfg}}]}


def test_a_key_file_is_made_for_the_owner_alone_and_values_are_not_in_what_is_kept(tmp_path: Path) -> None:
    keys = Keyring(tmp_path / "deep" / "secrets.key")
    kept = keys.encrypt("TOKEN", VALUE)
    assert stat.S_IMODE(keys.path.stat().st_mode) == 0o600
    assert VALUE not in kept
    assert keys.decrypt("TOKEN", kept) == VALUE
    assert keys.encrypt("TOKEN", VALUE) != kept, "the same value looks different each time"


def test_a_value_cannot_be_moved_to_another_name(tmp_path: Path) -> None:
    keys = Keyring(tmp_path / "secrets.key")
    kept = keys.encrypt("ONE", VALUE)
    with pytest.raises(Unavailable, match="TWO"):
        keys.decrypt("TWO", kept)


def test_keys_are_rotated(tmp_path: Path) -> None:
    keys = Keyring(tmp_path / "secrets.key")
    kept = keys.encrypt("TOKEN", VALUE)
    keys.add_key()
    assert keys.decrypt("TOKEN", kept) == VALUE, "the old key is still there"
    fresh = keys.fresh(kept)
    keys.forget_old_keys()
    assert keys.decrypt("TOKEN", fresh) == VALUE
    with pytest.raises(Unavailable, match="key that is not here"):
        keys.decrypt("TOKEN", kept)
    assert stat.S_IMODE(keys.path.stat().st_mode) == 0o600


def test_keys_of_the_setting_come_before_the_file(tmp_path: Path) -> None:
    old, new = new_key(), new_key()
    kept = Keyring(tmp_path / "none", old).encrypt("TOKEN", VALUE)
    assert Keyring(tmp_path / "none", f"{new}, {old}").decrypt("TOKEN", kept) == VALUE
    assert not (tmp_path / "none").exists()
    with pytest.raises(InvalidInput, match="secret_keys"):
        Keyring(tmp_path / "none", "no key").encrypt("TOKEN", VALUE)
    with pytest.raises(Unavailable, match="secret_keys"):
        Keyring(tmp_path / "none").decrypt("TOKEN", kept)


@pytest.mark.parametrize("name", ["", "1a", "a-b", "a.b", "a" * 65, "ä", "a b"])
def test_names_that_templates_cannot_spell_are_refused(name: str) -> None:
    with pytest.raises(InvalidInput, match="name"):
        check_name(name)


@pytest.mark.parametrize("value", ["", "brief", "x" * 8_193, "has a \0 byte"])
def test_values_that_cannot_be_used_are_refused_without_being_shown(value: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        check_value(value)
    assert not value or value not in str(refused.value)


def test_secrets_are_referred_to_only_where_a_type_lets_them() -> None:
    types = executor_registry.discover_executors()
    good = http(headers={"Authorization": "Bearer {{ secrets.TOKEN }}"}, json={"k": "{{ secrets.KEY }}"})
    check_dag(good, types)
    assert used_by(good) == {"TOKEN", "KEY"}
    assert names_in({"a": "{{ parameters.secrets }}"}) == set()
    wrong: list[tuple[dict[str, Any], str]] = [
        (http(method="{{ secrets.TOKEN }}"), "secrets cannot be used here; only in"),
        (http(json="{{ secrets }}"), "write secrets.NAME"),
        (http(json="{{ secrets.a.b }}"), "write secrets.NAME"),
        ({"nodes": [{"id": "a", "type": "noop", "cfg": {"artifact": "{{ secrets.TOKEN }}"}}]}, "cannot be used here"),
        ({"nodes": [{"id": "a", "type": "notify", "cfg": {"text": "{{ secrets.T }}"}}]}, "only in headers, url"),
        (
            {"nodes": [{"id": "a", "type": "chain", "cfg": {"chain": "b", "parameters": {"x": "{{ secrets.T }}"}}}]},
            "cannot be used here",
        ),
        (
            {"nodes": [{"id": "a", "type": "http", "cfg": {"url": "https://x"}, "map": {"over": "{{ secrets.T }}"}}]},
            "there is no 'secrets' here",
        ),
        (http(headers={"Authorization": "Bearer abc"}), "set a secret"),
        (http(headers={"X-API-Key": "abc"}), "set a secret"),
        (http(url="https://user:word@example.org/"), "set a secret"),
    ]
    for dag, message in wrong:
        with pytest.raises(InvalidInput, match=message):
            check_dag(dag, types)


def test_values_are_hidden_however_they_are_written() -> None:
    hidden = Redaction((VALUE,))
    encoded = base64.b64encode(VALUE.encode()).decode()
    for text in (VALUE, quote(VALUE), quote(VALUE, safe=""), encoded, f"x{VALUE}y{VALUE}"):
        assert VALUE not in hidden.text(text)
        assert HIDDEN in hidden.text(text)
    assert hidden.document({"a": [VALUE, 1, None, {VALUE: True}]}) == {"a": [HIDDEN, 1, None, {HIDDEN: True}]}
    error = hidden.error(InvalidInput(f"url: {VALUE}", field=VALUE))
    assert (str(error), error.__class__) == (f"url: {HIDDEN}", InvalidInput)
    assert VALUE not in repr(error) + repr(getattr(error, "fields", ""))
    assert isinstance(hidden.error(RuntimeError(VALUE)), NodeFailed)


def test_the_first_key_is_complete_when_its_file_appears(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that loses the race for the first key uses the winner's, and leaves nothing behind."""
    keyring, link = Keyring.of(tmp_path, ""), os.link

    def link_second(source: str, target: Path) -> None:
        assert Path(source).read_bytes().strip(), "complete before it has its name"
        winner = Keyring.of(tmp_path, "")
        monkeypatch.setattr(os, "link", link)
        winner.encrypt("a", "value of the winner")
        link(source, target)

    monkeypatch.setattr(os, "link", link_second)
    text = keyring.encrypt("b", "value of the other")
    assert Keyring.of(tmp_path, "").decrypt("b", text) == "value of the other"
    assert len([*keyring.path.parent.iterdir()]) == 1
