"""A history in a file and on a real PostgreSQL server."""

from tests.assistant.store.conftest import database, postgres, url

__all__ = ["database", "postgres", "url"]
