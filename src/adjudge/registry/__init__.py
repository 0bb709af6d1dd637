"""Who is alive, and what they can do."""

from adjudge.registry.driver import LEASE_SEC, Health, LiveWorker, Registry, WorkerInfo

__all__ = ["LEASE_SEC", "Health", "LiveWorker", "Registry", "WorkerInfo"]
