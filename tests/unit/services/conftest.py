"""The application on SQLite, and on both databases."""

from tests.unit.api.conftest import api, api_on_both

__all__ = ["api", "api_on_both"]
