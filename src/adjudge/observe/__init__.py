"""Logs and metrics.

Declarations and set-up, each metric once. Every package but ``domain`` may import this one; it imports none of them.
"""
