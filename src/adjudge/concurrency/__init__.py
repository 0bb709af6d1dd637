"""Helpers for asyncio code that know nothing of the rest of the system."""
