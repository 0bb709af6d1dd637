"""Copies all rows of a SQLite database to PostgreSQL."""
