"""Caches and token buckets: data that may be lost at any time.

Everything here works without Redis, or raises an error that says that Redis is unavailable.
"""
