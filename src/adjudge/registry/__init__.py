"""The worker registry: live workers and their capabilities."""

from adjudge.registry.driver import LEASE_SEC, LiveWorker, Registry, WorkerHealth, WorkerInfo

__all__ = ["LEASE_SEC", "LiveWorker", "Registry", "WorkerHealth", "WorkerInfo"]
