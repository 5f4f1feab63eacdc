"""Alembic revisions of the history's tables, shipped with the program; run by `assistant.store.migrate`."""
