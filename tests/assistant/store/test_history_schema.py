"""The tables, the statements that read them and the revisions that make them say the same; and reading stays light."""

from __future__ import annotations

import os
import re
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, Engine, inspect, text
from sqlalchemy.exc import OperationalError, ProgrammingError

from assistant.journal.chain import GENESIS
from assistant.nodes import past
from assistant.store import clock, incidents, journal, migrate, profiles, read, write
from assistant.store.file import create_file
from assistant.store.location import parse
from assistant.store.read import HEAD, REVISIONS, VERSION_TABLE
from assistant.store.server import file_engine, server_engine
from assistant.store.tables import TABLES
from tests.assistant.store.history_lab import (
    DAY,
    GPU,
    HOST,
    MINUTE,
    T0,
    Machine,
    check,
    differing,
    plain,
    reader,
    remember,
    values,
    xid,
)
from tests.cases import each
from tests.command_server import CommandServer
from tests.overlay import compiled_data

ROOT = Path(__file__).parent.parent.parent.parent
SQL = {
    **read.SQL,
    **profiles.SQL,
    **incidents.SQL,
    **journal.SQL,
    **{f"nodes {n}": said for n, said in past.SQL.items()},
}
STATEMENTS = {
    **write.STATEMENTS, **clock.STATEMENTS, **{f"profile {n}": s for n, s in profiles.STATEMENTS.items()},
    **{f"incident {n}": s for n, s in incidents.STATEMENTS.items()},
    **{f"journal {n}": s for n, s in journal.STATEMENTS.items()},
}  # fmt: skip
COLUMNS = {**write.COLUMNS, **profiles.COLUMNS, **incidents.COLUMNS, **journal.COLUMNS}


def engine_of(url: str) -> Engine:
    """An engine for whatever stands there, nothing migrated."""
    location = parse(url)
    assert location is not None
    if location.path is None:
        return server_engine(location)
    create_file(location.path)
    return file_engine(location.path)


@pytest.fixture
def made(url: str) -> Iterator[Connection]:
    """A connection to tables of the newest revision."""
    with engine_of(url).connect() as connection:
        yield connection


def test_the_revisions_make_the_tables(made: Connection) -> None:
    context = MigrationContext.configure(made, opts={"version_table": VERSION_TABLE, "compare_type": False})
    assert compare_metadata(context, TABLES) == []


def test_the_revisions_are_those_on_disk() -> None:
    script = ScriptDirectory(str(migrate.FOLDER))
    assert script.get_heads() == [HEAD]
    assert tuple(reversed([r.revision for r in script.walk_revisions()])) == REVISIONS
    assert list(REVISIONS) == sorted(REVISIONS), "an unknown greater one must be a newer one"


@each("name", sorted(SQL))
def test_a_statement_runs_on_the_tables(made: Connection, name: str) -> None:
    made.rollback()
    parameters = dict.fromkeys(re.findall(r"(?<!:):(\w+)", SQL[name]), 0) | {
        n: "x" for n in ("host", "fact", "subject", "rule", "kind", "who", "surface") if f":{n}" in SQL[name]
    }
    alone = {"version": [(HEAD,)], "first_seen": [(None,)], "journal head": [(0, GENESIS)]}
    assert made.execute(text(SQL[name]), parameters).fetchall() == alone.get(name, [])


@each("name", sorted(set(SQL) - {"version"}))
def test_every_column_of_a_statement_stands_in_the_tables(name: str) -> None:
    tables = {alias: table for table, alias in re.findall(r"(?:FROM|JOIN) (\w+) (\w)\b", SQL[name])}
    used = set(re.findall(r"\b([a-z])\.(\w+)", SQL[name]))
    assert used or name in ("node", "hosts")
    for alias, column in used:
        assert column in TABLES.tables[tables[alias]].c, f"{alias}.{column}"
    assert set(re.findall(r"(?:FROM|JOIN) (\w+)", SQL[name])) <= set(TABLES.tables)


@each("name", sorted(STATEMENTS))
def test_a_writing_statement_runs_on_the_tables(made: Connection, name: str) -> None:
    made.rollback()  # what the one before has written
    words = {c for columns in COLUMNS.values() for c in columns} | {"gone", "new_call"}
    whole = {"as_of", "at", "count", "code", "exit", "node_id", "run_id", "track_id", "xid", "num", "holds_from"}
    whole |= {"target_id", "process_id", "pid", "start", "parent", "length", "samples", "incident_id", "seq"}
    whole |= {n for n in words if n.startswith(("first_", "last_", "opened_"))}
    asked = set(re.findall(r"(?<!:):(\w+)", STATEMENTS[name]))
    made.execute(text("INSERT INTO node (id, host) VALUES (7, 'n1')"))
    if "profile" in name:
        made.execute(text("INSERT INTO profile_target (id, node_id, name) VALUES (7, 7, 'train.py')"))
    special = {"late": False, "boot": "x", "cells": b"x", "is_open": True}
    parameters = {n: special.get(n, 7 if n in whole or n not in words else "x") for n in asked}
    made.execute(text(STATEMENTS[name]), parameters)


@each("table", sorted(COLUMNS))
def test_a_row_that_is_written_is_whole(table: str) -> None:
    columns = TABLES.tables[table].c
    assert set(COLUMNS[table]) == set(columns.keys()) - {"id"}


@pytest.mark.process
def test_reading_loads_neither_sqlalchemy_nor_pydantic(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/history.db"
    for minute in range(3):
        check(url, Machine(replay=minute), T0 + minute * MINUTE)
    program = (
        "import sys\nfrom assistant import store\nfrom assistant.store.read import open_reader\n"
        "from assistant.store.location import parse\nfrom knowledge.observation import *\n"
        "url = sys.argv[1]\nr = open_reader(parse(url)); print(len(r.runs()), r.series('gpu.pcie.replay', gpu('0000:3b:00.0', 'n1')).values)\n"
        "from rules.loader import load\nfrom assistant.diagnosis import diagnose\nrules = load(); at = int(sys.argv[2])\n"
        "o = Observation('gpu.pcie.replay', gpu('0000:3b:00.0', 'n1'), 5, source=Source('nvml', 'x'), at=at, clock=Clock.REALTIME)\n"
        "print(len(store.earlier(url, 'n1', [o], rules.rules)[0]), bool(store.since_last(url, diagnose([o], rules, as_of=at), 'n1')))\n"
        "print(*sorted({m.split('.')[0] for m in sys.modules}), file=sys.stderr)"
    )
    env = os.environ | {"GPUDIAG_CACHE_DIR": str(compiled_data(tmp_path))}
    argv = [sys.executable, "-c", program, url, str(T0 + 3 * MINUTE)]
    heavy = {"sqlalchemy", "sqlmodel", "alembic", "pydantic", "psycopg", "numpy", "platformdirs", "yaml"}
    for _ in range(2):  # where shards were missing, the first one builds them: the next only reads
        done = subprocess.run(argv, capture_output=True, text=True, check=True, cwd=ROOT, env=env, timeout=100)
        assert done.stdout.splitlines() == ["3 (0.0, 1.0, 2.0)", "3 True"]
        loaded = set(done.stderr.split())
        if not loaded & heavy:
            break
    assert not loaded & heavy
    assert "sqlite3" in loaded


# --- upgrades -----------------------------------------------------------------------------

NODE = "INSERT INTO node (id, host) VALUES (1, 'n1')"
RUN = (
    "INSERT INTO run (id, node_id, as_of, origin, late, boot_id, version, ruleset, state, usable, text_en, text_zh, exit, "
    f"probes, sources) VALUES (1, 1, {T0}, 'live', false, 'boot-1', '0.1.0', 'r', 'unhealthy', 'no', 'bad', '坏', 1, '{{}}', "
    "'[\"nvml\"]')"
)
TRACK = "INSERT INTO track (id, node_id, fact, subject, probe, call) VALUES (1, 1, 'gpu.pcie.replay', 'node:n1/gpu:0000:3b:00.0', 'nvml', 'x')"
SAMPLE = f"INSERT INTO observation (track_id, at, run_id, status, num, holds_from) VALUES (1, {T0}, 1, 'ok', 7, {T0})"
FINDING = (
    "INSERT INTO finding (id, node_id, key, rule, xid, subject, title_en, title_zh, severity, grade, role, bucket, explained_by, "
    "count, first_event, last_event, clock, opened_at, first_run, first_at, last_run, last_at, how) VALUES (1, 1, "
    "'gpu-fell-off-bus@n1/0000:3b:00.0', 'gpu-fell-off-bus', 79, 'node:n1/gpu:0000:3b:00.0', 'off', '掉线', 'critical', "
    f"'probable', 'root', 'RESTART_BM', '[]', 1, {T0}, {T0}, 'realtime', {T0 - DAY}, 1, {T0}, 1, {T0}, '')"
)


@pytest.fixture
def first_version(empty_url: str) -> str:
    """A history as the first revision wrote it."""
    engine = engine_of(empty_url)
    with engine.begin() as c:
        migrate.upgrade(c, "0001")
        for statement in (NODE, RUN, TRACK, SAMPLE, FINDING):
            c.execute(text(statement.replace(":", "\\:")))
        if c.dialect.name == "postgresql":
            for table in ("node", "run", "track", "finding"):
                c.execute(text(f"SELECT setval(pg_get_serial_sequence('{table}', 'id'), 1)"))
    engine.dispose()
    return empty_url


def test_an_old_history_is_read_and_goes_on(first_version: str) -> None:
    url = first_version
    machine = Machine(replay=9, more=[xid(79, T0)])
    _, changes = check(url, machine, T0 + MINUTE)  # reading comes first: it upgrades
    changes = differing(changes)
    assert [(f.id, at) for f, at in changes.still] == [("gpu-fell-off-bus@n1/0000:3b:00.0", T0 - DAY)]
    assert [(c.before, c.after) for c in changes.counters] == [(7, 9)]
    with reader(url) as r:
        assert values(r, "gpu.pcie.replay") == (7, 9)
        assert r.first_seen(HOST, "gpu-fell-off-bus", GPU) == T0 - DAY
    with engine_of(url).connect() as c:
        assert migrate.version(c) == HEAD


def test_of_an_old_finding_nobody_knows_what_it_stood_on(first_version: str) -> None:
    _, changes = check(first_version, Machine(), T0 + MINUTE)
    assert [u.missing for u in differing(changes).unseen] == [("gpu-fell-off-bus",)]
    assert differing(changes).cleared == ()


def test_writing_upgrades_too(first_version: str) -> None:
    diagnosis = plain(Machine(replay=9).observations(T0 + MINUTE), T0 + MINUTE)
    assert remember(first_version, diagnosis) is None
    with reader(first_version) as r:
        assert values(r, "gpu.pcie.replay") == (7, 9)


def test_up_and_down_and_up(empty_url: str) -> None:
    from alembic.operations import Operations

    engine = engine_of(empty_url)
    with engine.begin() as c:
        migrate.upgrade(c)
        script = ScriptDirectory(str(migrate.FOLDER))
        with Operations.context(MigrationContext.configure(c)):
            for revision in script.walk_revisions():
                revision.module.downgrade()
        assert migrate.version(c) == HEAD
        c.execute(text(f"DROP TABLE {VERSION_TABLE}"))
        assert migrate.version(c) == ""
        migrate.upgrade(c)
        context = MigrationContext.configure(c, opts={"version_table": VERSION_TABLE, "compare_type": False})
        assert compare_metadata(context, TABLES) == []


def test_a_revision_that_fails_leaves_nothing_behind(first_version: str, tmp_path: Path) -> None:
    folder = tmp_path / "broken"
    (folder / "versions").mkdir(parents=True)
    for file in (migrate.FOLDER / "versions").glob("v*.py"):
        (folder / "versions" / file.name).write_text(file.read_text(encoding="utf-8"), encoding="utf-8")
    (folder / "versions" / "v9999_broken.py").write_text(
        f'revision = "9999"\ndown_revision = "{HEAD}"\nfrom alembic import op\nimport sqlalchemy as sa\n'
        "def upgrade():\n    op.create_table('half', sa.Column('a', sa.Text))\n    op.execute('SELECT nothing FROM nowhere')\n",
        encoding="utf-8",
    )
    engine = engine_of(first_version)
    with pytest.raises((OperationalError, ProgrammingError), match="nowhere"), engine.begin() as c:
        migrate.upgrade(c, folder=folder)
    with engine.connect() as c:
        assert migrate.version(c) == "0001"
        assert c.execute(text("SELECT count(*) FROM finding")).scalar_one() == 1
        assert "stands_on" not in {col["name"] for col in inspect(c).get_columns("finding")}
        assert "half" not in inspect(c).get_table_names()


def test_two_processes_upgrade_at_once(command_server: CommandServer, first_version: str) -> None:
    program = (
        "import sys; from assistant.store.write import opened; from assistant.store.location import parse\n"
        "print('ready', flush=True); sys.stdin.readline(); opened(parse(sys.argv[1])).close(); print('done')"
    )
    children = [command_server.start([first_version], env=os.environ, program=program) for _ in range(4)]
    for child in children:
        assert child.stdout.readline() == "ready\n"
    for child in children:
        child.stdin.write("\n")
        child.stdin.flush()
    assert [child.communicate(timeout=60)[0] for child in children] == ["done\n"] * 4
    with reader(first_version) as r:
        assert values(r, "gpu.pcie.replay") == (7,)


def test_an_old_file_that_cannot_be_written_says_so(tmp_path: Path) -> None:
    path = tmp_path / "history.db"
    engine = engine_of(f"sqlite:///{path}")
    with engine.begin() as c:
        migrate.upgrade(c, "0001")
    engine.dispose()
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("BEGIN IMMEDIATE")
    from assistant import store

    diagnosis = plain(Machine().observations(T0), T0)
    said = store.since_last(f"sqlite:///{path}", diagnosis, HOST)
    assert "another process keeps it locked" in getattr(said, "en", "")
    connection.close()
