"""The registry: live API servers, schedulers and workers."""

from adjudge.registry.driver import LEASE_SEC, LiveProcess, ProcessHealth, ProcessInfo, ProcessRole, Registry

__all__ = ["LEASE_SEC", "LiveProcess", "ProcessHealth", "ProcessInfo", "ProcessRole", "Registry"]
