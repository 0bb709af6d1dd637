"""Who is alive, and what they can do."""

from adjudge.registry.driver import LEASE_SEC, LiveWorker, Registry, WorkerHealth, WorkerInfo

__all__ = ["LEASE_SEC", "LiveWorker", "Registry", "WorkerHealth", "WorkerInfo"]
