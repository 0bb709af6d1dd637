"""Audit log, metric samples, queue statistics, idempotency keys, blob references."""
