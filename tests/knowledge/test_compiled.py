"""Shards: built once for one content, again for another, and never the reason that nothing works."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from knowledge import compiled, yamlfile
from knowledge.errors import FaultsError
from knowledge.schema.facts import Entry
from tests.cases import each


class Counter:
    """A build that counts its calls."""

    def __init__(self, answer: Any) -> None:
        self.answer, self.calls = answer, 0

    def __call__(self) -> Any:
        self.calls += 1
        return self.answer


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache directory of our own; it does not exist yet."""
    folder = tmp_path / "cache" / "deep"
    monkeypatch.setenv("GPUDIAG_CACHE_DIR", str(folder))
    return folder


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """One data file."""
    path = tmp_path / "data.yaml"
    path.write_text("- a\n")
    return path


# --- the cache ----------------------------------------------------------------------------


def test_the_same_content_is_built_once(cache: Path, source: Path) -> None:
    build = Counter([{"name": "a", "zh": "中"}])
    assert compiled.cached("s", [source], build) == build.answer
    os.utime(source, (1, 1))  # touched, not changed
    assert compiled.cached("s", [source], build) == build.answer
    assert build.calls == 1
    assert len(list(cache.iterdir())) == 1


def test_other_content_is_built_again_and_the_oldest_goes(cache: Path, source: Path) -> None:
    """Two checkouts that are used in turn leave each other's alone; of many versions a few stay."""
    build = Counter(list(range(9)))
    for letter in "abababcdefg":
        source.write_text(f"- {letter}\n")  # the same length
        compiled.cached("s", [source], build)
    assert build.calls == len("abcdefg")
    assert len(list(cache.iterdir())) == 4


def test_a_file_that_came_went_or_was_renamed_counts(cache: Path, source: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.yaml"
    other.write_text("- c\n")
    sets = [[source], [source, other], [other, source], [other], []]
    assert len({compiled.fingerprint(files) for files in sets}) == len(sets)
    before = compiled.fingerprint([source])
    assert compiled.fingerprint([source.rename(tmp_path / "renamed.yaml")]) != before


def test_content_that_moves_between_files_counts(tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    one.write_text("ab")
    two.write_text("c")
    before = compiled.fingerprint([one, two])
    one.write_text("a")
    two.write_text("bc")
    assert compiled.fingerprint([one, two]) != before


def test_shards_do_not_replace_each_other(cache: Path, source: Path) -> None:
    for name in ("xid", "xid_more", "xid-more", "sxid"):
        compiled.cached(name, [source], Counter([name]))
    for name in ("xid", "xid_more", "xid-more", "sxid"):
        build = Counter([])
        assert compiled.cached(name, [source], build) == [name]
        assert build.calls == 0


def _spoilt(text: str) -> Callable[[Path], object]:
    return lambda path: path.write_text(text)


@each(
    "spoil",
    [
        _spoilt(""), _spoilt("{"), _spoilt("[]"), _spoilt("null"), _spoilt("7"), _spoilt('{"other": 1}'),
        lambda path: path.write_bytes(b"\xff\xfe\x00"), lambda path: path.write_text("[" * 100_000),
        lambda path: path.write_text(path.read_text()[:-3]),
    ],
)  # fmt: skip
def test_a_damaged_cache_file_is_built_again(cache: Path, source: Path, spoil: Callable[[Path], object]) -> None:
    compiled.cached("s", [source], Counter(["good"]))
    (kept,) = cache.iterdir()
    spoil(kept)
    build = Counter(["good"])
    assert compiled.cached("s", [source], build) == ["good"]
    assert compiled.cached("s", [source], build) == ["good"]
    assert build.calls == 1, "and it is repaired"


def test_a_cache_that_cannot_be_written_costs_only_time(
    tmp_path: Path, source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("not a folder")  # holds for root too, whom no permission stops
    monkeypatch.setenv("GPUDIAG_CACHE_DIR", str(blocked / "below"))
    build = Counter([1])
    assert compiled.cached("s", [source], build) == [1]
    assert compiled.cached("s", [source], build) == [1]
    assert build.calls == 2


def test_a_cache_file_that_is_a_folder_costs_only_time(cache: Path, source: Path) -> None:
    compiled.cached("s", [source], Counter([1]))
    (kept,) = cache.iterdir()
    kept.unlink()
    kept.mkdir()
    assert compiled.cached("s", [source], Counter([1])) == [1]


def test_cold_and_warm_give_the_same_shape(cache: Path, source: Path) -> None:
    build = Counter({"a": (1, 2), 3: "x"})
    assert compiled.cached("s", [source], build) == compiled.cached("s", [source], build) == {"a": [1, 2], "3": "x"}


def test_what_make_built_is_read_by_its_content_alone(
    tmp_path: Path, cache: Path, source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = tmp_path / "made"
    with monkeypatch.context() as make:
        make.setenv("GPUDIAG_CACHE_DIR", str(made))
        compiled.cached("s", [source], Counter([1]))
    unused = Counter([2])
    assert compiled.cached("s", [source], unused, shipped=made) == [1]
    assert unused.calls == 0
    assert not cache.exists()
    source.write_text("- b\n")
    assert compiled.cached("s", [source], Counter([3]), shipped=made) == [3]


def test_where_the_cache_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GPUDIAG_CACHE_DIR", "/some/where")
    monkeypatch.setenv("XDG_CACHE_HOME", "/xdg")
    assert compiled.cache_dir() == Path("/some/where")
    monkeypatch.delenv("GPUDIAG_CACHE_DIR")
    assert compiled.cache_dir() == Path("/xdg/gpudiag")


# --- shards -------------------------------------------------------------------------------


def test_a_shipped_shard_is_preferred(cache: Path, tmp_path: Path) -> None:
    shipped = tmp_path / "shipped"
    shipped.mkdir()
    (shipped / "buckets.json").write_text(json.dumps([{"name": "FROM_THE_WHEEL"}]))
    assert compiled.shard("buckets", shipped=shipped) == [{"name": "FROM_THE_WHEEL"}]
    assert not cache.exists()


@pytest.mark.slow
def test_what_is_shipped_says_what_the_files_say(tmp_path: Path) -> None:
    (path,) = [p for p in compiled.write_shipped(tmp_path / "out", {"rules": {}}) if p.stem == "buckets"]
    assert json.loads(path.read_bytes()) == compiled.build_shard("buckets", compiled.shard_files("buckets"))
    assert {p.stem for p in path.parent.iterdir()} == {*compiled.shard_names(), "rules"}


def _fact(name: str, more: str = "") -> str:
    return f"- {{name: {name}, scope: gpu, type: int, kind: gauge, meaning: {{en: a, zh: 甲}}, says: {{en: b, zh: 乙}}{more}}}\n"


def test_every_fault_of_every_file_at_once(tmp_path: Path) -> None:
    folder = tmp_path / "knowledge"
    folder.mkdir()
    one, two, three = (folder / f"{n}.yaml" for n in ("one", "two", "three"))
    one.write_text(_fact("a.b") + _fact("Wrong Name") + _fact("c.d", ", untt: C"), encoding="utf-8")
    two.write_text(_fact("a.b") + "- 5\n", encoding="utf-8")
    three.write_text("not: a list\n")
    with pytest.raises(FaultsError) as caught:
        compiled.build_shard("facts", [one, two, three], below=tmp_path)
    said = [(f.file.rpartition("/")[2], f.line) for f in caught.value.faults]
    assert said == [("one.yaml", 2), ("one.yaml", 3), ("three.yaml", 1), ("two.yaml", 1), ("two.yaml", 2)]
    assert any("did you mean unit" in f.hint for f in caught.value.faults)
    assert any("already defined in knowledge/one.yaml" in f.message for f in caught.value.faults)


def test_a_missing_key_is_named_at_its_entry() -> None:
    document = yamlfile.parse("- name: a.b\n- {name: c.d}\n", "f.yaml")
    compiled.check(document, (1,), document.data[1], Entry)
    assert {(f.line, f.column) for f in document.faults} == {(2, 3)}
    assert {f.message for f in document.faults} >= {"key 'scope' is missing", "key 'says' is missing"}
