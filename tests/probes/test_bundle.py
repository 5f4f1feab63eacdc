"""Bundles come back byte for byte, and one that was tampered with is refused with one clear sentence."""

from __future__ import annotations

import contextlib
import gzip
import io
import json
import os
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from knowledge.errors import InputError, UsageError
from knowledge.observation import Status
from probes._bundle_store import UNPACKED, opened
from probes.bundle import BundleHost, from_iso, write
from probes.host import REPLY_STATUS, CallKind, Reply, iso
from tests.cases import each

FORMS = ("b", "b.tar.gz", "b.TGZ", "b.zip")
ASKED = sorted(REPLY_STATUS - {Status.NOT_ASKED})
# File names are bytes: those that are no UTF-8 reach Python as lone surrogates.
NAMES = st.text(min_size=1, max_size=12) | st.binary(min_size=1, max_size=8).map(os.fsdecode)
CALLS = st.one_of(
    st.tuples(st.just(CallKind.FILE), st.tuples(NAMES)),
    st.tuples(st.just(CallKind.COMMAND), st.lists(NAMES, min_size=1, max_size=3).map(tuple)),
)


@st.composite
def replies(draw: st.DrawFn) -> list[Reply]:
    out = []
    for kind, call in draw(st.lists(CALLS, unique=True, max_size=5)):
        status = draw(st.sampled_from([*ASKED, Status.NOT_ASKED]))
        asked = status is not Status.NOT_ASKED
        out.append(
            Reply(
                kind, call, status, draw(st.binary(max_size=60)) if asked else b"",
                draw(st.none() | st.integers(-64, 255)), draw(st.binary(max_size=20)) if asked else b"",
                draw(st.booleans()), draw(st.none() | st.integers(-(10**18), 4 * 10**18)), draw(st.text(max_size=20)),
            )
        )  # fmt: skip
    return out


def dmesg(data: bytes = b"[    0.000000] Linux version 6.8.0\n", **more: Any) -> Reply:
    return Reply(CallKind.COMMAND, ("dmesg",), data=data, exit_code=0, **more)


def contents(path: Path) -> dict[str, bytes]:
    """Name and content of everything in a bundle."""
    if path.is_dir():
        return {p.relative_to(path).as_posix(): p.read_bytes() for p in sorted(path.rglob("*")) if p.is_file()}
    return {path.name: path.read_bytes()}


# --- laws ---------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("form", FORMS)
@given(
    told=replies(),
    as_of=st.none() | st.integers(0, 4 * 10**18),
    name=st.from_regex(r"[a-z0-9.-]{0,12}", fullmatch=True),
)
def test_what_was_written_is_read(tmp_path_factory: pytest.TempPathFactory, form: str, told: list[Reply], as_of: int | None, name: str) -> None:  # fmt: skip
    folder = tmp_path_factory.mktemp("w")
    write(folder / form, name, told, as_of, "1.2.3")
    host = BundleHost(folder / form)
    assert (host.name, host.as_of, host.version, host.skipped) == (name, as_of, "1.2.3", 0)
    assert sorted(map(repr, host.replies)) == sorted(map(repr, told))
    for reply in told:
        is_file = reply.kind is CallKind.FILE
        assert reply == (host.read(reply.call[0]) if is_file else host.run(list(reply.call), deadline=0))
    (folder / "again").mkdir()
    write(folder / "again" / form, name, reversed(told), as_of, "1.2.3")
    assert contents(folder / "again" / form) == contents(folder / form), "the order of calls or the clock shows"
    assert [p.name for p in folder.iterdir() if p.name.startswith(".")] == []


@given(st.integers(-(10**19), 10**20))
def test_times_come_back_to_the_nanosecond(at: int) -> None:
    assert from_iso(iso(at)) == at


def test_times_of_other_writers_are_understood() -> None:
    assert from_iso("2026-03-03T13:00:00.5+01:00") == from_iso("2026-03-03T12:00:00.500Z")
    assert (iso(None), from_iso(None)) == (None, None)


@pytest.mark.parametrize("form", ["b.tar.gz", "b.zip"])
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_damage_is_an_input_error_or_none_at_all(tmp_path: Path, form: str, data: st.DataObject) -> None:
    path = tmp_path / form
    write(path, "n1", [dmesg(bytes(range(256)) * 4, stderr=b"x")], 5, "1")
    raw = bytearray(gzip.decompress(path.read_bytes()) if form == "b.tar.gz" else path.read_bytes())
    for _ in range(data.draw(st.integers(1, 4))):
        raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    del raw[data.draw(st.integers(0, len(raw)) | st.just(len(raw))) :]
    path.write_bytes(gzip.compress(raw) if form == "b.tar.gz" else raw)
    with contextlib.suppress(InputError):  # any other error fails the test
        assert all(r.status in REPLY_STATUS for r in BundleHost(path).replies)


# --- for people ---------------------------------------------------------------------------


def test_a_folder_is_readable_by_people(tmp_path: Path) -> None:
    query = Reply(
        CallKind.COMMAND, ("/usr/bin/nvidia-smi", "-q"), data=b"Attached GPUs : 1\n", exit_code=0, started=10**18
    )
    gone = Reply(CallKind.FILE, ("/var/log/kern.log",), Status.DENIED, detail="permission denied", stderr=b"no\n")
    write(tmp_path / "b", "gpu-12", [gone, query], 10**18, "0.3.0")
    assert contents(tmp_path / "b").keys() == {
        "manifest.json", "raw/0001-nvidia-smi-q.txt", "raw/0002-var-log-kern.log.stderr.txt",
    }  # fmt: skip
    assert json.loads((tmp_path / "b" / "manifest.json").read_text()) == {
        "schema": "gpudiag/bundle/1", "host": "gpu-12", "as_of": "2001-09-09T01:46:40Z", "gpudiag": "0.3.0",
        "entries": [
            {"kind": "command", "call": ["/usr/bin/nvidia-smi", "-q"], "file": "raw/0001-nvidia-smi-q.txt",
             "status": "ok", "exit_code": 0, "started": "2001-09-09T01:46:40Z", "cut": False, "detail": ""},
            {"kind": "file", "call": "/var/log/kern.log", "file": None, "status": "denied", "exit_code": None,
             "started": None, "cut": False, "detail": "permission denied",
             "stderr_file": "raw/0002-var-log-kern.log.stderr.txt"},
        ],
    }  # fmt: skip


def test_an_archive_unpacks_into_one_folder_that_is_a_bundle_too(tmp_path: Path) -> None:
    write(tmp_path / "b.tar.gz", "n1", [dmesg()], None, "1")
    with tarfile.open(tmp_path / "b.tar.gz") as archive:
        archive.extractall(tmp_path / "out")
    assert [p.name for p in (tmp_path / "out").iterdir()] == ["gpudiag-bundle"]
    for path in (tmp_path / "out", tmp_path / "out" / "gpudiag-bundle"):
        assert BundleHost(path).replies == (dmesg(),)


def test_an_archive_is_replaced_and_a_folder_is_not(tmp_path: Path) -> None:
    for form in FORMS:
        write(tmp_path / form, "n1", [], None, "1")
    write(tmp_path / "b.zip", "n2", [], None, "1")
    assert BundleHost(tmp_path / "b.zip").name == "n2"
    assert (tmp_path / "b.zip").stat().st_mode & 0o077 == 0, "logs name users and machines"
    with pytest.raises(UsageError, match="exists already"):
        write(tmp_path / "b", "n2", [], None, "1")
    assert BundleHost(tmp_path / "b").name == "n1"


def test_what_cannot_be_written_leaves_nothing(tmp_path: Path) -> None:
    for form in FORMS:
        with pytest.raises(UsageError, match="cannot be written"):
            write(tmp_path / "missing" / form, "n1", [dmesg()], None, "1")
    with pytest.raises(ValueError, match="two replies"):
        write(tmp_path / "b", "n1", [dmesg(), dmesg(b"")], None, "1")
    assert list(tmp_path.iterdir()) == []


# --- tampered and foreign -----------------------------------------------------------------


def manifest(*entries: object, **more: object) -> dict[str, Any]:
    return {
        "schema": "gpudiag/bundle/1",
        "host": "n1",
        "as_of": None,
        "gpudiag": "9.9",
        "entries": list(entries),
        **more,
    }


def entry(**more: object) -> dict[str, object]:
    return {"kind": "file", "call": "/a", "file": "raw/a", "status": "ok", **more}


def folder(path: Path, data: object) -> Path:
    """A bundle with this manifest and the file raw/a."""
    (path / "raw").mkdir(parents=True)
    (path / "raw" / "a").write_bytes(b"text\n")
    (path / "manifest.json").write_text(data if isinstance(data, str) else json.dumps(data))
    return path


def refused(path: Path, **more: Any) -> InputError:
    with pytest.raises(InputError) as caught:
        BundleHost(path, **more)
    error = caught.value
    assert str(path) in error.message
    assert "\n" not in error.message
    assert len(error.message) < len(str(path)) + 200
    assert error.hint
    return error


@each(
    ("data", "said"),
    [
        ("", "is no JSON"),
        ("[" * 100_000, "is no JSON"),
        ("[]", "is not a JSON object"),
        (manifest(schema=7), "schema is 7"),
        (manifest(schema="other/1"), "not of a gpudiag bundle"),
        (manifest(host=None), "host must be"),
        (manifest(as_of="yesterday"), "as_of: 'yesterday' is not a time"),
        (manifest(as_of="2026-02-30T00:00:00Z"), "as_of: "),
        (manifest(entries={}), "entries must be"),
        (manifest(entries=[entry()] * 10_001), "more than 10000 entries"),
        (manifest(7), "entry 1 is not a JSON object"),
        (manifest(entry(), entry(file=None)), "entry 2: /a is recorded twice"),
        (manifest(entry(status="none_seen")), "cannot come to none_seen"),
        (manifest(entry(status="fine")), "'fine' is no status"),
        (manifest(entry(status=None)), "status must be"),
        (manifest(entry(status="not_asked")), "output of a call that was not made"),
        (manifest(entry(call=["/a"])), "call must be a path"),
        (manifest(entry(kind="command", call="ls -l")), "call must be a list of words"),
        (manifest(entry(kind="command", call=[])), "call must be a list of words"),
        (manifest(entry(exit_code=True)), "exit_code must be"),
        (manifest(entry(cut="no")), "cut must be"),
        (manifest(entry(started=3)), "entry 1: 3 is not a time"),
        (manifest(entry(file=["raw/a"])), "file must be"),
        *(
            (manifest(entry(**{key: name})), "is no path within the bundle")
            for key in ("file", "stderr_file")
            for name in (
                "../a",
                "/etc/passwd",
                "raw/../../a",
                "raw//a",
                "./a",
                "C:a",
                "raw\\a",
                "raw/a\0",
                "raw/",
                "raw/\ud800",
                "raw/\x1b[31m",
                "a" * 100_000,
            )
        ),
    ],
)
def test_a_tampered_manifest_is_one_clear_error(tmp_path: Path, data: object, said: str) -> None:
    text = data if isinstance(data, str) else json.dumps(data)
    error = refused(folder(tmp_path / "b", text))
    assert said in error.message


def test_a_newer_format_tells_which_gpudiag_reads_it(tmp_path: Path) -> None:
    error = refused(folder(tmp_path / "b", manifest(schema="gpudiag/bundle/2")))
    assert "gpudiag/bundle/2" in error.message
    assert error.hint == "use gpudiag 9.9 or a newer one"


def test_what_newer_writers_add_is_passed_over(tmp_path: Path) -> None:
    call = {"kind": "nvml", "call": {"function": "nvmlDeviceGetCount"}, "shape": 3}
    host = BundleHost(folder(tmp_path / "b", manifest(call, entry(colour="red"), mood="fine")))
    assert host.skipped == 1
    assert host.replies == (Reply(CallKind.FILE, ("/a",), data=b"text\n"),)


@each("key", ["file", "stderr_file"])
def test_a_missing_file_is_a_failed_reply(tmp_path: Path, key: str) -> None:
    host = BundleHost(folder(tmp_path / "b", manifest(entry(**{key: "raw/lost"}))))
    reply = host.read("/a")
    assert reply.status is Status.FAILED
    assert "raw/lost is missing" in reply.detail
    assert host.read("/b").status is Status.NOT_ASKED


def test_a_folder_with_links_and_pipes_is_refused(tmp_path: Path) -> None:
    path = folder(tmp_path / "b", manifest(entry(file="raw/x")))
    (tmp_path / "secret").write_text("secret")
    for make in (lambda p: p.symlink_to(tmp_path / "secret"), os.mkfifo):
        make(path / "raw" / "x")
        assert "link or a device" in refused(path).message
        (path / "raw" / "x").unlink()
    (tmp_path / "outside").mkdir()
    (path / "link").symlink_to(tmp_path / "outside")
    (path / "manifest.json").write_text(json.dumps(manifest(entry(file="link/x"))))
    assert "link or a device" in refused(path).message
    (path / "manifest.json").unlink()
    (path / "manifest.json").symlink_to(tmp_path / "secret")
    assert "link or a device" in refused(path).message


def packed(path: Path, *members: tarfile.TarInfo | tuple[str, bytes]) -> Path:
    """A tar.gz of a manifest and of these members."""
    with tarfile.open(path, "w:gz") as archive:
        for member in (("manifest.json", json.dumps(manifest()).encode()), *members):
            if isinstance(member, tarfile.TarInfo):
                archive.addfile(member, io.BytesIO(b"\0" * member.size))
            else:
                info = tarfile.TarInfo(member[0])
                info.size = len(member[1])
                archive.addfile(info, io.BytesIO(member[1]))
    return path


def special(kind: bytes, target: str = "") -> tarfile.TarInfo:
    info = tarfile.TarInfo("raw/x")
    info.type, info.linkname = kind, target
    return info


@each(
    ("member", "said"),
    [
        (("../x", b""), "no path within"),
        (("/etc/x", b""), "no path within"),
        (("manifest.json", b"{}"), "is in it twice"),
        (special(tarfile.SYMTYPE, "/etc/passwd"), "link or a device"),
        (special(tarfile.LNKTYPE, "manifest.json"), "link or a device"),
        (special(tarfile.FIFOTYPE), "link or a device"),
        (special(tarfile.CHRTYPE), "link or a device"),
    ],
)
def test_members_that_are_no_plain_files_are_refused(tmp_path: Path, member: tarfile.TarInfo | tuple[str, bytes], said: str) -> None:  # fmt: skip
    assert said in refused(packed(tmp_path / "b.tgz", member)).message


def test_zips_are_held_to_the_same(tmp_path: Path) -> None:
    cases: list[tuple[str, int, str]] = [("../x", 0, "no path within"), ("raw/x", 0o120777 << 16, "link or a device")]
    for name, mode, said in cases:
        with zipfile.ZipFile(tmp_path / "b.zip", "w") as archive:
            archive.writestr("manifest.json", json.dumps(manifest()))
            info = zipfile.ZipInfo(name)
            info.external_attr = mode
            archive.writestr(info, "/etc/passwd")
        assert said in refused(tmp_path / "b.zip").message


@each("form", FORMS)
def test_bombs_are_refused(tmp_path: Path, form: str) -> None:
    write(tmp_path / form, "n1", [dmesg(b"\0" * 24_000_000)], None, "1")
    assert "holds more than 16 MiB" in refused(tmp_path / form, limit=16 << 20).message


@pytest.mark.slow
def test_many_small_members_are_refused(tmp_path: Path) -> None:
    members = [(f"raw/{i}", b"") for i in range(20_100)]
    assert "more than 20016 files" in refused(packed(tmp_path / "b.tgz", *members)).message


def test_a_header_that_claims_to_be_huge_is_refused(tmp_path: Path) -> None:
    huge = tarfile.TarInfo("raw/x")
    huge.type, huge.size = tarfile.XHDTYPE, 8 << 20
    assert "impossible size" in refused(packed(tmp_path / "b.tgz", huge)).message


@each("form", ["b.tar.gz", "b.zip"])
def test_a_truncated_archive_is_one_clear_error(tmp_path: Path, form: str) -> None:
    write(tmp_path / form, "n1", [dmesg(os.urandom(5000))], None, "1")
    whole = (tmp_path / form).read_bytes()
    for length in (2, 10, 30, len(whole) // 2, len(whole) - 9, len(whole) - 1):
        (tmp_path / form).write_bytes(whole[:length])
        assert "damaged or cut off" in refused(tmp_path / form).message, length


@each(
    ("make", "said"),
    [
        (lambda p: None, "no such file"),
        (lambda p: p.write_bytes(b""), "is no bundle"),
        (lambda p: p.write_bytes(b"[    0.0] Linux version 6.8\n"), "is no bundle"),
        (lambda p: p.write_bytes(gzip.compress(b"[    0.0] Linux version 6.8\n")), "damaged"),
        (lambda p: p.mkdir(), "no manifest.json"),
        (lambda p: [folder(p / n, manifest()) for n in "xy"], "more than one manifest.json"),
    ],
)
def test_what_is_no_bundle_is_said_to_be_none(tmp_path: Path, make: Callable[[Path], object], said: str) -> None:
    make(tmp_path / "b")
    assert said in refused(tmp_path / "b").message


def test_names_from_a_bundle_cannot_command_a_terminal(tmp_path: Path) -> None:
    host = BundleHost(folder(tmp_path / "b", manifest(entry(call="/a\x1b[2J"), host="n1\x1b]0;x\x07\u202e")))
    assert host.name == "n1"
    assert host.replies[0].title == "/a"


def test_the_clock_does_not_show_in_an_archive(tmp_path: Path) -> None:
    for form in ("b.tar.gz", "b.zip"):
        write(tmp_path / form, "n1", [dmesg()], 10**18, "1")
    assert (tmp_path / "b.tar.gz").read_bytes()[4:8] == b"\0\0\0\0"
    with tarfile.open(tmp_path / "b.tar.gz") as tar, zipfile.ZipFile(tmp_path / "b.zip") as zipped:
        assert {m.mtime for m in tar} == {0}
        assert {m.date_time for m in zipped.infolist()} == {(1980, 1, 1, 0, 0, 0)}


def test_what_no_entry_names_counts_too(tmp_path: Path) -> None:
    assert "holds more than" in refused(packed(tmp_path / "b.tgz", ("raw/x", b"\0" * 5000)), limit=4000).message
    assert BundleHost(tmp_path / "b.tgz", limit=6000).replies == ()


def test_unpacking_stops_at_the_limit_and_not_at_the_end(tmp_path: Path) -> None:
    whole = gzip.decompress(packed(tmp_path / "b.tgz").read_bytes())
    (tmp_path / "b.tgz").write_bytes(gzip.compress(whole + b"\0" * (32 << 20)))
    assert "holds more than" in refused(tmp_path / "b.tgz", limit=1 << 20).message


def test_a_tar_that_was_cut_off_before_it_was_packed(tmp_path: Path) -> None:
    whole = gzip.decompress(packed(tmp_path / "b.tgz", ("raw/x", b"a" * 3000)).read_bytes())
    for blocks in (3, 4, 7, 8):  # within the last header's content, and one block short of its end
        (tmp_path / "b.tgz").write_bytes(gzip.compress(whole[: blocks * 512]))
        assert "cut off" in refused(tmp_path / "b.tgz").message


def test_a_member_that_leads_back_in_the_archive(tmp_path: Path) -> None:
    whole = gzip.decompress(packed(tmp_path / "b.tgz").read_bytes())
    back = tarfile.TarInfo("raw/x")
    back.size = -1024
    (tmp_path / "b.tgz").write_bytes(gzip.compress(whole[:1024] + back.tobuf(tarfile.GNU_FORMAT)))
    assert "a size below zero" in refused(tmp_path / "b.tgz").message


def test_a_zip_is_refused_by_its_directory(tmp_path: Path) -> None:
    """Its sum and its proportion are looked at before a byte is unpacked: what it says it holds is damaged, and nobody notices."""
    path = tmp_path / "b.zip"
    for count, size, why in ((3, 1 << 20, "more than 2 MiB"), (1, 80 << 20, "times its own size")):
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            for number in range(count):
                archive.writestr(f"b/{number}", bytes(size))
        data = bytearray(path.read_bytes())
        data[60:80] = b"\xff" * 20  # within the first member
        path.write_bytes(data)
        with pytest.raises(InputError, match=why):
            opened(path, (2 << 20) if count == 3 else UNPACKED)


def test_an_archive_out_of_proportion_is_refused_on_the_way(tmp_path: Path) -> None:
    path = tmp_path / "b.tar.gz"
    with tarfile.open(path, "w:gz") as archive:
        info = tarfile.TarInfo("b/manifest.json")
        info.size = 80 << 20
        archive.addfile(info, io.BytesIO(bytes(info.size)))
    with pytest.raises(InputError, match="times its own size"):
        opened(path)
