"""The scanner against a slow and obvious one, and on files as they come: packed, broken, huge, empty."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import subprocess
import sys
import tracemalloc
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
import re2
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from knowledge.errors import InputError
from knowledge.observation import AT_LEAST, Event, Observation, Scope, Status, Subject
from probes._scan_fold import Limits, new
from probes._scan_lines import cut
from probes._scan_match import FEW, Matcher, compiled, searched
from probes._scan_windows import EDGE
from probes.base import Context, Line, LogFormat, lines_of
from probes.parse import fabricmanager_log, kernel_log
from probes.registry import log_formats
from probes.scan import ScanResult, scan
from tests.conftest import ROOT

XID = b"Mar  3 12:00:00 n7 kernel: NVRM: Xid (PCI:0000:3b:00): 79, pid=1, name=x, GPU has fallen off the bus."
DULL = b"Mar  3 12:00:00 n7 systemd[1]: Started session 7 of user alice.\n"


@dataclass
class Recorder:
    """A log format that keeps what it is given."""

    name: str
    triggers: tuple[str, ...]
    before: int = 0
    after: int = 0
    lines: list[Line] = field(default_factory=list)

    def parse(self, lines: Sequence[Line], context: Context) -> list[Observation]:
        self.lines = list(lines)
        return []

    def format(self) -> LogFormat:
        return LogFormat(
            self.name, self.name, 1, (), lambda _: 1, self.triggers, self.parse, self.before, self.after
        )  # fmt: skip


def reference(data: bytes, recorder: Recorder, cap: int) -> list[Line]:
    """What the format is to get, worked out line by line."""
    lines = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")
    if not lines[-1]:
        lines.pop()
    trigger = compiled(tuple(recorder.triggers))

    def matches(piece: bytes) -> bool:
        return trigger.search(piece) is not None

    hits, texts = set(), {}
    for number, line in enumerate(lines, 1):
        if len(line) <= cap:
            texts[number] = [line]
            if matches(line):
                hits.add(number)
            continue
        long = cut(line, cap, matches)
        last = len(long.pieces) - 1
        texts[number] = [piece for i, piece in enumerate(long.pieces) if i in (0, last) or i in long.hits]
        if long.hits:
            hits.add(number)
    wanted = {n for n in texts if n <= EDGE or n > len(lines) - EDGE}
    for hit in hits:
        wanted |= set(range(hit - recorder.before, hit + recorder.after + 1)) & set(texts)
    return [Line(n, text.decode("utf-8", "replace")) for n in sorted(wanted) for text in texts[n]]


WORDS = st.sampled_from(
    [b"NVRM: a", b"plain", b"oom-kill b", b"", b"x" * 70, b"\xc3\x28\xfe", "Fehler ü".encode(), b"y NVRM: z" * 9]
)
ENDS = st.sampled_from([b"\n", b"\n", b"\n", b"\r\n", b"\r", b"\r\r\n"])
TEXTS = st.lists(st.tuples(WORDS, ENDS), max_size=400).map(lambda parts: b"".join(w + e for w, e in parts))
DENSE = st.builds(
    lambda picks, n, tail: b"".join((b"line %d\n" % i if i not in picks else b"line %d NVRM: %s\r\n" % (i, b"q" * (i % 90))) for i in range(n)) + tail,
    st.sets(st.integers(0, 600)), st.integers(0, 600), st.sampled_from([b"", b"end", b"NVRM: end"]),
)  # fmt: skip


@given(
    data=st.one_of(TEXTS, DENSE),
    block=st.one_of(st.integers(1, 300), st.just(1 << 20)),
    cap=st.sampled_from([16, 64, 65536]),
    before=st.one_of(st.integers(0, 3), st.just(90)),
    after=st.integers(0, 5),
)
def test_equals_the_slow_reference(data: bytes, block: int, cap: int, before: int, after: int) -> None:
    one = Recorder("one", (r"NVRM: ", r"oom-k[a-z]+"), before, after)
    two = Recorder("two", (r"^line \d+5\b", "plain$"), after, before)
    scan([io.BytesIO(data)], [one.format(), two.format()], block=block, line=cap, engine="re2")
    if not data:
        return
    assert one.lines == reference(data, one, cap)
    assert two.lines == reference(data, two, cap)


@given(data=TEXTS, block=st.integers(1, 4000))
def test_line_numbers_are_those_of_lines_of(data: bytes, block: int) -> None:
    recorder = Recorder("all", (r"NVRM",))
    scan([io.BytesIO(data)], [recorder.format()], block=block)
    texts = {line.number: line.text for line in lines_of(data.decode("utf-8", "replace"))}
    assert all(texts[n] == text for n, text in recorder.lines)


def xids(result: ScanResult) -> list[tuple[str, int | None, int | None]]:
    return [
        (o.source.call, o.source.line, o.value.code)
        for o in result.observations
        if o.fact == "xid" and isinstance(o.value, Event)
    ]


def log(before: int = 500, after: int = 500) -> bytes:
    return DULL * before + XID + b"\n" + DULL * after


def run(*inputs: Path | io.BytesIO | str, formats: Sequence[LogFormat] = (kernel_log.FORMAT,)) -> ScanResult:
    return scan(inputs, formats, lambda name: Context(name, "n7"))


@pytest.mark.parametrize(
    "pack",
    [
        lambda d: d,
        gzip.compress,
        lambda d: gzip.compress(d[:900]) + gzip.compress(d[900:]),
        lambda d: gzip.compress(d) + b"\0" * 512,
        zstandard.ZstdCompressor().compress,
        zstandard.ZstdCompressor(write_checksum=True, write_content_size=False).compress,
        lzma.compress,
        lambda d: lzma.compress(d[:900]) + b"\0" * 8 + lzma.compress(d[900:], check=lzma.CHECK_SHA256),
        bz2.compress,
        lambda d: bz2.compress(d[:900], 1) + bz2.compress(b"") + bz2.compress(d[900:]),
        lambda d: zstandard.ZstdCompressor().compress(d[:900]) + b"\x50\x2a\x4d\x18\x03\0\0\0abc" + zstandard.ZstdCompressor().compress(d[900:]),
    ],
    ids=["plain", "gzip", "gzip members", "gzip padding", "zstd", "zstd checksum", "xz", "xz streams", "bzip2", "bzip2 streams", "zstd frames"],
)  # fmt: skip
def test_packed_by_content_not_by_name(pack: Callable[[bytes], bytes], tmp_path: Path) -> None:
    path = tmp_path / "some.name"
    path.write_bytes(pack(log()))
    result = run(path)
    assert xids(result) == [(str(path), 501, 79)]
    assert result.notes == ()
    assert result.inputs[0].lines == 1001


def small_blocks(data: bytes) -> bytes:
    return bz2.compress(data, 1)


def quick_xz(data: bytes) -> bytes:
    return lzma.compress(data, preset=0)


PACKERS: list[Callable[[bytes], bytes]] = [
    gzip.compress, zstandard.ZstdCompressor(write_checksum=True).compress, quick_xz, small_blocks,
]  # fmt: skip


@pytest.mark.parametrize("pack", PACKERS, ids=["gzip", "zstd", "xz", "bzip2"])
@pytest.mark.parametrize("keep", [0.5, 0.9, 0.999])
def test_what_stands_ahead_of_a_break_is_used(pack: Callable[[bytes], bytes], keep: float) -> None:
    noise = b"".join(b"%d %s\n" % (i, os.urandom(30).hex().encode()) for i in range(20_000))
    packed = pack(XID + b"\n" + noise)
    result = run(io.BytesIO(packed[: int(len(packed) * keep)]))
    assert [code for _, _, code in xids(result)] == [79]
    [note] = result.notes
    assert note.problem
    assert "cut off after" in note.text.en
    assert note.text.zh
    assert result.inputs[0].lines > 20_001 * keep - 4000  # a block of bzip2 -1 holds 100 kB


@pytest.mark.parametrize("pack", PACKERS, ids=["gzip", "zstd", "xz", "bzip2"])
def test_damage_in_the_middle_is_told(pack: Callable[[bytes], bytes]) -> None:
    packed = bytearray(
        pack(XID + b"\n" + b"".join(b"%d %s\n" % (i, os.urandom(30).hex().encode()) for i in range(20_000)))
    )
    middle = len(packed) // 2
    packed[middle : middle + 64] = b"\xff" * 64
    result = run(io.BytesIO(bytes(packed)))
    assert [code for _, _, code in xids(result)] == [79]
    assert any(note.problem and "damaged" in note.text.en for note in result.notes)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("pack", "parts"),
    [(gzip.compress, 1), (zstandard.ZstdCompressor().compress, 1), (lzma.compress, 5), (bz2.compress, 50)],
    ids=["gzip", "zstd", "xz", "bzip2"],
)
def test_a_small_file_that_unpacks_into_a_huge_one_needs_little_memory(
    pack: Callable[[bytes], bytes], parts: int
) -> None:
    # In parts where packing itself takes long.
    packed = pack(XID + b"\n") + pack(DULL * (1_000_000 // parts)) * parts
    assert len(packed) < 1 << 20
    tracemalloc.start()
    result = run(io.BytesIO(packed))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert [code for _, _, code in xids(result)] == [79]
    assert result.inputs[0].lines == 1_000_001
    assert peak < 48 << 20 < len(DULL) * 1_000_000


def test_packed_data_that_breaks_ahead_of_its_first_byte_is_not_called_empty() -> None:
    for pack in PACKERS:
        result = run(io.BytesIO(pack(log())[:12]))
        [only] = result.observations
        assert only.status is Status.FAILED
        assert "cut off" in only.detail
        assert "empty" not in only.detail


def test_text_that_begins_like_bzip2_is_text() -> None:
    assert len(xids(run(io.BytesIO(b"BZh9 is a word\n" + log())))) == 1


def test_bytes_behind_the_packed_data_are_told() -> None:
    for pack in (gzip.compress, zstandard.ZstdCompressor().compress, lzma.compress, bz2.compress):
        result = run(io.BytesIO(pack(log()) + b"trailing words"))
        assert len(xids(result)) == 1
        assert "follow the" in result.notes[0].text.en


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "is empty"),
        (b"\x7fELF\x02\x01" + bytes(range(256)) * 40, "program"),
        (bytes(range(256)) * 40, "binary"),
        (b"\xff\xfeh\0e\0l\0l\0o\0", "UTF-16"),
        (b"\xfd7zXZ\x00rest of it", "xz"),
    ],
)
def test_what_is_not_a_log_is_said_in_one_sentence(data: bytes, words: str) -> None:
    result = run(io.BytesIO(data))
    [note] = result.notes
    assert words in note.text.en
    [only] = result.observations
    assert (only.fact, only.status) == ("log.kernel.readable", Status.FAILED)
    assert words in only.detail


def test_zero_bytes_that_a_crash_left_do_not_hide_a_log() -> None:
    for zeros in (8, 4096, 100_000):
        assert [code for _, _, code in xids(run(io.BytesIO(b"\0" * zeros + b"\n" + log())))] == [79]
        assert [code for _, _, code in xids(run(io.BytesIO(DULL + b"\0" * zeros + XID)))] == [79]


def test_unreadable_inputs_do_not_lose_the_others(tmp_path: Path) -> None:
    good = tmp_path / "good.log"
    good.write_bytes(log())
    result = run(tmp_path, tmp_path / "absent.log", good)
    assert [code for _, _, code in xids(result)] == [79]
    assert ["directory" in n.text.en or "no such file" in n.text.en for n in result.notes] == [True, True]
    with pytest.raises(InputError, match="is a directory"):
        run(tmp_path)
    with pytest.raises(InputError, match="none of the logs"):
        run(tmp_path, tmp_path / "absent.log")


FROM_STANDARD_INPUT = """
from probes.parse import kernel_log
from probes.scan import scan
found = scan(["-"], [kernel_log.FORMAT]).observations
print([(o.source.call, o.source.line, o.value.code) for o in found if o.fact == "xid" and o.value])
"""


@pytest.mark.process
def test_standard_input() -> None:
    argv = [sys.executable, "-c", FROM_STANDARD_INPUT]
    done = subprocess.run(argv, input=gzip.compress(log()), capture_output=True, check=True, cwd=ROOT)
    assert done.stdout.decode() == "[('stdin', 501, 79)]\n"


def test_many_files_keep_their_order_and_names(tmp_path: Path) -> None:
    paths = [tmp_path / f"{n}.log" for n in range(3)]
    for path in paths:
        path.write_bytes(log())
    assert [call for call, _, _ in xids(run(*paths))] == [str(path) for path in paths]


def test_a_huge_line_is_read_in_pieces_and_in_little_memory() -> None:
    class Endless(io.RawIOBase):
        """40 MB without a newline, an XID in the middle of it."""

        def __init__(self) -> None:
            self.parts = (
                [b"y" * (1 << 20)] * 20 + [b" " + XID.partition(b"kernel: ")[2] + b" "] + [b"z" * (1 << 20)] * 20
            )

        def read(self, size: int = -1) -> bytes:
            if not self.parts:
                return b""
            out, rest = self.parts[0][:size], self.parts[0][size:]
            self.parts[:1] = [rest] if rest else []
            return out

    tracemalloc.start()
    result = scan([Endless()], [kernel_log.FORMAT])  # type: ignore[list-item]
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert [code for _, _, code in xids(result)] == [79]
    assert "longer than 64 KiB" in result.notes[0].text.en
    assert peak < 30 << 20


def test_what_has_no_room_is_counted_and_takes_back_none_seen() -> None:
    """Different lines of trouble without end: the last kind is found all the same, and nothing is said to be absent."""
    words = ("alpha", "beta", "gamma", "delta")
    many = b"".join(b"NVRM: %s fault %d %d\n" % (words[i % 4].encode(), i // 1000, i % 1000) for i in range(4000))
    few = Limits(any=2, fresh=2, telling=20, whole=0)
    whole = scan([io.BytesIO(many + log())], [kernel_log.FORMAT])
    assert {o.status for o in whole.observations if o.fact == "oom_kill"} == {Status.NONE_SEEN}
    for part in (
        scan([io.BytesIO(many + log())], [kernel_log.FORMAT], keep=40_000),
        scan([io.BytesIO(many + log())], [kernel_log.FORMAT], fold=lambda: new(few)),
    ):
        assert [code for _, _, code in xids(part)] == [79]
        assert {o.status for o in part.observations if o.fact == "oom_kill"} == {Status.FAILED}
        assert any(note.problem and "only counted" in note.text.en for note in part.notes)


def test_a_format_that_only_finds_does_not_complain_about_another_s_file() -> None:
    data = (Path(__file__).parents[1] / "captures" / "logs" / "fabricmanager-start.log").read_bytes()
    formats = [kernel_log.FORMAT, fabricmanager_log.FORMAT]
    result = run(io.BytesIO(data), formats=formats)
    assert result.inputs[0].formats == ("fabricmanager-log",)
    quoted = run(io.BytesIO(data + XID.partition(b"kernel: ")[2] + b"\n"), formats=formats)
    assert len(xids(quoted)) == 1
    kernel = [o for o in quoted.observations if o.source.probe == "kernel-log"]
    assert {o.status for o in kernel} == {Status.OK}


def test_a_record_of_the_journal_export_is_handed_over_whole() -> None:
    record = (
        b"__CURSOR=s=%d\n__REALTIME_TIMESTAMP=16657558091%05d\n_BOOT_ID=0\n_TRANSPORT=kernel\nPRIORITY=4\nSYSLOG_FACILITY=0\n"
        b"SYSLOG_IDENTIFIER=kernel\n_MACHINE_ID=7\nMESSAGE=%s\n_HOSTNAME=n9\n_SOURCE_MONOTONIC_TIMESTAMP=7\n\n"
    )
    data = b"".join(
        record % (n, n, b"NVRM: Xid (PCI:0000:3b:00): 13, Ch 1" if n == 300 else b"usb") for n in range(600)
    )
    result = run(io.BytesIO(data))
    [xid] = [o for o in result.observations if o.fact == "xid" and o.value]
    assert (xid.at, xid.subject.host) == (1665755809100300000, "n9")


def test_progress_tells_name_and_bytes(tmp_path: Path) -> None:
    path = tmp_path / "x.log"
    path.write_bytes(log(2000, 2000))
    told: list[tuple[str, int, int | None]] = []
    scan([path], [kernel_log.FORMAT], progress=lambda *args: told.append(args), block=10_000)
    assert told[-1] == (str(path), path.stat().st_size, path.stat().st_size)
    assert [done for _, done, _ in told] == sorted(done for _, done, _ in told)


def test_the_answer_does_not_depend_on_the_block_size() -> None:
    data = (Path(__file__).parents[1] / "captures" / "logs" / "syslog-bus-loss.log").read_bytes() * 40
    results = [scan([io.BytesIO(data)], [kernel_log.FORMAT], block=size) for size in (100, 4096, 1 << 22)]
    assert results[0] == results[1] == results[2]


def test_every_trigger_is_a_pattern_that_ripgrep_takes_too() -> None:
    for trigger in (*kernel_log.TRIGGERS, *fabricmanager_log.FORMAT.triggers):
        re2.compile(trigger)
        assert '\\"' not in trigger
        assert "\\b" not in trigger  # word boundaries cost the automaton its speed on other alphabets


def test_a_step_is_found_by_a_trigger_of_its_format() -> None:
    """Where no such trigger matched, nobody looks for steps."""
    for f in log_formats():
        assert set(f.series) <= set(f.triggers), f.name


def test_few_lines_are_told_apart_as_many_are() -> None:
    logs = (Path(__file__).parents[1] / "captures" / "logs").glob("*.log")
    for data in [b"", b"\n\n", *(log.read_bytes()[:4096] for log in logs)]:
        matcher = Matcher(log_formats(), "re2")
        places, triggers = matcher.lines(data, 0, len(data))
        assert list(zip(places[::2], places[1::2], strict=True)) == list(searched(matcher.any, data, 0, len(data)))
        assert triggers is not None
        assert {n for n, t in enumerate(matcher.triggers) if compiled((t,)).search(data)} <= triggers


def test_hyperscan_gives_the_same_lines() -> None:
    data = (Path(__file__).parents[1] / "captures" / "logs" / "syslog-bus-loss.log").read_bytes() * 20
    assert len(data) > FEW
    formats = [kernel_log.FORMAT, fabricmanager_log.FORMAT]
    plain, fast = Matcher(formats, "re2"), Matcher(formats, "hyperscan")
    assert fast.lines(data, 0, len(data)).places == plain.lines(data, 0, len(data)).places


def test_a_database_that_was_kept_is_used_and_a_damaged_one_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("hyperscan")
    monkeypatch.setenv("GPUDIAG_CACHE_DIR", str(tmp_path))
    data = b"\n".join(b"NVRM: Xid (PCI:0000:3b:00): 79, x" if i % 9 == 0 else b"all is well" for i in range(99))
    found = []
    for spoil in (lambda _: None, lambda _: None, lambda kept: kept.write_bytes(kept.read_bytes()[:-1000])):
        for kept in tmp_path.iterdir():
            spoil(kept)
        found.append(Matcher(log_formats(), "hyperscan").lines(data, 0, len(data)).places)
    assert found == [Matcher(log_formats(), "re2").lines(data, 0, len(data)).places] * 3
    assert len(list(tmp_path.iterdir())) == 1


def test_of_a_fleet_s_log_as_much_is_told_apart_as_fits_and_nothing_is_reassured() -> None:
    """A late fault of a sort of its own is found, whatever came before."""
    line = "Aug 27 03:{m:02d}:{s:02d} node-{n:04d} kernel: NVRM: Xid (PCI:0000:3b:00): {x}, pid=7, name=python, failed"
    lines = [line.format(m=n // 60, s=n % 60, n=n, x=94) for n in range(700)]
    text = "\n".join([*lines, line.format(m=20, s=0, n=9999, x=95)]).encode()
    result = scan([io.BytesIO(text)], log_formats())
    told = [o.value.code for o in result.observations if o.fact == "xid" and isinstance(o.value, Event)]
    assert 500 < len(told) < 600
    assert told[-1] == 95
    least = {o.value.code for o in result.observations if isinstance(o.value, Event) and o.detail.startswith(AT_LEAST)}
    assert least == {94}
    assert not [o for o in result.observations if o.status is Status.NONE_SEEN]
    assert [n for n in result.notes if n.problem and f"{701 - len(told)} lines were only counted" in n.text.en]


def test_subjects_are_of_the_file_s_host() -> None:
    result = run(io.BytesIO(b"[1.0] " + XID.partition(b"kernel: ")[2]))
    assert {o.subject.up(Scope.NODE) for o in result.observations} == {Subject(Scope.NODE, "n7")}


def test_of_lines_of_steps_the_first_the_last_and_some_between_are_kept_and_none_is_called_lost() -> None:
    rows = [
        b"step %d | loss is nan %d" % (n, n % 7) if n % 8 else b"[rank%d] step %d" % (n % 64, n) for n in range(60_000)
    ]
    recorder = Recorder("steps", (r"step \d",))
    form = replace(recorder.format(), series=recorder.triggers)
    result = scan([io.BytesIO(b"\n".join(rows))], [form])
    got = [line.number for line in recorder.lines]
    assert got[:2048] == list(range(1, 2049))
    assert got[-1024:] == list(range(60_000 - 1023, 60_001))
    between = got[2048:-1024]
    assert 800 < len(between) <= 2048
    assert got == sorted(set(got))
    assert {n % 8 for n in between} == set(range(8)), (
        "what comes back each eighth line is in the sample, and so is the rest"
    )
    assert not result.notes
    assert result.inputs[0].matches == 60_000
