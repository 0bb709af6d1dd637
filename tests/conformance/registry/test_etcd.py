"""The etcd registry: outages, several endpoints, expired leases, environments."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from typing import cast

import httpx
import pytest

from adjudge import settings
from adjudge.cli.wiring.drivers import open_registry
from adjudge.domain.errors import InvalidInput, Unavailable
from adjudge.registry import ProcessHealth, ProcessInfo
from adjudge.registry.etcd import EtcdRegistry
from adjudge.store import Database
from tests.conformance.registry.test_registry import ANNA, names
from tests.support.server_process import free_port
from tests.support.servers import EtcdServer


@dataclass(frozen=True)
class NewerInfo(ProcessInfo):
    """As a later version may announce itself."""

    gpus: int = 0


@pytest.fixture
def own_server() -> Iterator[EtcdServer]:
    server = EtcdServer().start()
    yield server
    server.stop()


async def test_environments_do_not_see_each_other(etcd_server: EtcdServer) -> None:
    production = EtcdRegistry([etcd_server.endpoint], environment="prod", lease_sec=60)
    staging = EtcdRegistry([etcd_server.endpoint], environment="prod2", lease_sec=60)
    await production.register(ANNA)
    assert await names(staging) == []
    await production.deregister("anna-1")
    await production.close()
    await staging.close()


async def test_unknown_fields_of_newer_worker_are_ignored(etcd_server: EtcdServer) -> None:
    registry = EtcdRegistry([etcd_server.endpoint], environment="mixed", lease_sec=60)
    await registry.register(NewerInfo(**asdict(ANNA), gpus=4))
    assert [live.info for live in await registry.list()] == [ANNA]
    await registry.deregister("anna-1")
    await registry.close()


async def test_next_endpoint_is_tried_if_one_is_down(etcd_server: EtcdServer) -> None:
    addresses = [f"http://127.0.0.1:{free_port()}", etcd_server.endpoint + "/"]
    registry = EtcdRegistry(addresses, environment="several", lease_sec=60)
    await registry.register(ANNA)
    assert await names(registry) == ["anna-1"]
    await registry.deregister("anna-1")
    await registry.close()


async def test_etcd_outage_and_recovery(own_server: EtcdServer) -> None:
    registry = EtcdRegistry([own_server.endpoint], environment="test", lease_sec=60)
    await registry.register(ANNA)
    own_server.kill()
    for call in (registry.list(), registry.keep_alive("anna-1", health=ProcessHealth.READY), registry.register(ANNA)):
        with pytest.raises(Unavailable, match=r"etcd at 127\.0\.0\.1"):
            await call
    own_server.revive()
    assert await registry.keep_alive("anna-1", health=ProcessHealth.DRAINING)
    assert [worker.info for worker in await registry.list()] == [replace(ANNA, health=ProcessHealth.DRAINING)]
    await registry.close()


async def test_former_owner_does_not_write_key(etcd_server: EtcdServer) -> None:
    former = EtcdRegistry([etcd_server.endpoint], environment="takeover", lease_sec=60)
    owner = EtcdRegistry([etcd_server.endpoint], environment="takeover", lease_sec=60)
    await former.register(ANNA)
    await owner.register(replace(ANNA, pid=1))
    assert not await former.keep_alive("anna-1", health=ProcessHealth.DEGRADED)
    assert [worker.info for worker in await owner.list()] == [replace(ANNA, pid=1)]
    for registry in (former, owner):
        await registry.close()


async def test_user_and_password(own_server: EtcdServer) -> None:
    secret = "s3cret-pass"
    async with httpx.AsyncClient(base_url=f"{own_server.endpoint}/v3/auth", timeout=60) as admin:
        for path, body in (
            ("user/add", {"name": "root", "password": secret}),
            ("role/add", {"name": "root"}),
            ("user/grant", {"user": "root", "role": "root"}),
            ("enable", {}),
        ):
            (await admin.post(path, json=body)).raise_for_status()
    address = [own_server.endpoint]
    registry = EtcdRegistry(address, environment="test", lease_sec=60, user="root", password=secret)
    await registry.register(ANNA)
    assert await names(registry) == ["anna-1"]
    await registry.close()
    environ = {"ADJUDGE_ENVIRONMENT": "test", "ADJUDGE_ETCD_ENDPOINTS": own_server.endpoint}
    environ |= {"ADJUDGE_ETCD_USER": "root", "ADJUDGE_ETCD_PASSWORD": secret}
    async with open_registry(settings.load(environ=environ), cast("Database", None)) as by_settings:
        assert await names(by_settings) == ["anna-1"]
    for other_user in (
        EtcdRegistry(address, environment="test"),
        EtcdRegistry(address, environment="test", user="root", password="wr0ng-pass"),
    ):
        with pytest.raises(Unavailable) as caught:
            await other_user.list()
        assert "wr0ng-pass" not in str(caught.value)
        await other_user.close()


@pytest.mark.parametrize(
    "endpoints",
    [[], ["127.0.0.1:2379"], ["redis://127.0.0.1"], ["http://[::1"], ["http://127.0.0.1:99999"], ["http://"]],
)
def test_invalid_endpoints_are_rejected(endpoints: list[str]) -> None:
    with pytest.raises(InvalidInput, match="etcd_endpoints"):
        EtcdRegistry(endpoints, environment="test")
