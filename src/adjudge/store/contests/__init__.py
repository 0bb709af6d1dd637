"""Contests: tables and queries."""
