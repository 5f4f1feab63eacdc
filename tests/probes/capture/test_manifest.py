"""capture.json: written at once, read without trust, deleted without touching what is not its own."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from knowledge.errors import InputError
from knowledge.language import Text
from probes.capture import facts, manifest
from probes.capture.model import SCHEMA, Item, Outcome, Part, Process, Python, Rung, Target

words = st.text(max_size=20)
pids = st.integers(1, (1 << 31) - 1)
pythons = st.none() | st.builds(
    Python,
    st.tuples(st.integers(3, 3), st.integers(8, 14)),
    words,
    words,
    st.sampled_from(["absent", "loaded"]),
    st.booleans(),
)
processes = st.builds(
    Process, pid=pids, start=st.integers(0, 1 << 50), name=words, command=st.lists(words, max_size=4).map(tuple), uid=st.integers(0, 1 << 30),
    user=words, state=st.sampled_from("RSDZTt"), tracer=st.integers(0, 1 << 20), threads=st.integers(0, 4096), parent=st.integers(0, 1 << 20),
    inner_pid=st.integers(0, 1 << 20), contained=st.booleans(), container=words, python=pythons,
)  # fmt: skip
ranks = st.none() | st.integers(0, 1 << 20)
targets = st.builds(
    Target,
    processes,
    ranks,
    ranks,
    ranks,
    words,
    st.lists(words, max_size=3).map(tuple),
    words,
    st.lists(processes, max_size=2).map(tuple),
)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | words, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(words, inner, max_size=4), max_leaves=12
)  # fmt: skip
_KEYS = (
    "id", "host", "as_of", "window", "targets", "stacks", "threads", "gpus", "hang", "observations", "observations_revision", "notes", "clocks",
)  # fmt: skip
documents = st.dictionaries(st.sampled_from(_KEYS), json_values).map(lambda d: {"schema": SCHEMA, **d})


@given(targets)
def test_a_target_survives(target: Target) -> None:
    row = json.loads(json.dumps(manifest.plain_target(target)))
    ((found, _),) = manifest.targets({"targets": [row]})
    assert found == target


@given(documents)
def test_no_document_makes_it_raise(document: dict[str, Any]) -> None:
    for target, row in manifest.targets(document):
        assert target.process.pid > 0
        assert isinstance(row, dict)
    facts.observations(document)


@given(st.lists(targets, max_size=2), json_values)
def test_nor_do_rows_of_strange_shapes(found: list[Target], strange: Any) -> None:
    rows = [
        manifest.plain_target(t)
        | {"parts": [{"item": strange, "file": strange, "why": strange}], "aftermath": strange, "iterations": strange}
        for t in found
    ]
    document = json.loads(
        json.dumps(
            {
                "schema": SCHEMA,
                "targets": rows,
                "window": strange,
                "stacks": {str(t.process.pid): strange for t in found},
            }
        )
    )
    facts.observations(document)


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "null", '{"schema": "gpudiag/capture/99"}', "[" * 100_000, '{"schema": ["gpudiag/capture/1"]}'],
    ids=["empty", "cut", "list", "null", "newer", "deep", "no-name"],
)  # fmt: skip
def test_what_is_no_capture_is_refused(text: str) -> None:
    with pytest.raises(InputError):
        manifest.parsed(text)


def test_a_record_is_written_and_read(tmp_path: Path) -> None:
    manifest.write(tmp_path, {"schema": SCHEMA, "id": "x", "targets": []})
    assert manifest.read(tmp_path)["id"] == "x"
    assert manifest.read(tmp_path / manifest.NAME)["id"] == "x"
    assert (tmp_path / manifest.NAME).stat().st_mode & 0o077 == 0
    with pytest.raises(InputError):
        manifest.read(tmp_path / "nowhere")


def _record(folder: Path, *files: str) -> Path:
    folder.mkdir()
    parts = [manifest.plain_part(Part(Item.TORCH, Outcome.OK, Rung.GDB, Text("x"), file=name)) for name in files]
    manifest.write(folder, {"schema": SCHEMA, "id": folder.name, "targets": [{"process": {"pid": 1}, "parts": parts}]})
    return folder


def test_a_record_is_deleted_with_its_own_files_only(tmp_path: Path) -> None:
    stranger = tmp_path / "precious"
    stranger.write_text("keep me")
    record = _record(tmp_path / "a", "trace.json", "../precious", str(stranger), "..", "", "link.json")
    (record / "trace.json").write_text("{}")
    (record / "link.json").symlink_to(stranger)
    assert manifest.delete(record) == ["link.json"]
    assert stranger.read_text() == "keep me"
    assert not (record / "trace.json").exists()
    whole = _record(tmp_path / "b", "trace.json")
    (whole / "trace.json").write_text("{}")
    assert manifest.delete(whole) == []
    assert not whole.exists()
    with pytest.raises(InputError):
        manifest.delete(tmp_path)


def test_records_are_folders_that_hold_one(tmp_path: Path) -> None:
    _record(tmp_path / "20260101T000000-1")
    _record(tmp_path / "20250101T000000-1")
    (tmp_path / "other").mkdir()
    assert [p.name for p in manifest.records(tmp_path)] == ["20250101T000000-1", "20260101T000000-1"]
    assert list(manifest.records(tmp_path / "nowhere")) == []
