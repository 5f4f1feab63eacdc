"""A history in a file and on a real PostgreSQL server."""

from tests.assistant.store.conftest import database, database_with_tables, empty_url, postgres, url

__all__ = ["database", "database_with_tables", "empty_url", "postgres", "url"]
