"""Brings the tables to the newest revision. Alembic does the work; no ini file and no ``env.py`` is involved."""

from __future__ import annotations

from pathlib import Path

from sqlalchemy import Connection, inspect, text

from assistant.store.read import VERSION_TABLE

FOLDER = Path(__file__).parent / "migrations"


def version(connection: Connection) -> str | None:
    """The revision of the tables; empty where there are none; None where there are tables of somebody else."""
    names = set(inspect(connection).get_table_names())
    if VERSION_TABLE in names:
        return str(connection.execute(text(f"SELECT version_num FROM {VERSION_TABLE}")).scalar() or "")
    foreign = names if connection.dialect.name == "sqlite" else names & {"node", "run", "observation"}
    return None if foreign else ""


def upgrade(connection: Connection, target: str = "head", folder: Path = FOLDER) -> None:
    """Run what is missing up to `target`, within the transaction that `connection` is in.

    The caller holds the lock under which no other process migrates (SQLite: BEGIN IMMEDIATE; PostgreSQL: an
    advisory lock) and commits; what fails leaves nothing behind.
    """
    from alembic.config import Config
    from alembic.runtime.environment import EnvironmentContext
    from alembic.runtime.migration import MigrationContext, RevisionStep
    from alembic.script import ScriptDirectory

    script = ScriptDirectory(str(folder))

    def steps(revision: str | tuple[str, ...], _: MigrationContext) -> list[RevisionStep]:
        return script._upgrade_revs(target, revision)  # type: ignore[arg-type]  # as alembic.command does

    config = Config()
    config.set_main_option("script_location", str(folder))
    with EnvironmentContext(config, script, fn=steps, destination_rev=target) as environment:
        environment.configure(connection=connection, version_table=VERSION_TABLE, transaction_per_migration=False)
        environment.run_migrations()
