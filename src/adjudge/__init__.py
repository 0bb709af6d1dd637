"""Adjudge: an online judge that never loses, duplicates or reorders a verdict."""

__version__ = "0.1.0"
