"""Files from Slack: fetched with the real clients, kept in a private folder, and nothing else of the machine is anybody's."""

from __future__ import annotations

import asyncio
import gzip
import os
import stat
import tarfile
import time
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("slack_sdk")
pytest.importorskip("aiohttp")

from slack_sdk.web.async_client import AsyncWebClient

from assistant.session.state import Origin, Seen
from assistant.slack import _kept
from assistant.slack.heard import File, Place, sentence
from assistant.slack.uploads import FilesError, Uploads
from assistant.sources import read
from knowledge.errors import InputError
from knowledge.observation import Status
from tests import slack_payloads as sent
from tests.assistant.dialogue.talk import OFF_BUS
from tests.slack_lab import Slack
from tests.trace_files import compute_bound

ROOT = Path(__file__).parents[3]
PLACE = Place(sent.TEAM, "C1", "100.1")
OTHER = Place(sent.TEAM, "C1", "200.2")
LOG = OFF_BUS.encode()


@pytest.fixture
def slack() -> Iterator[Slack]:
    with Slack() as slack:
        yield slack


@pytest.fixture
def client(slack: Slack) -> AsyncWebClient:
    return AsyncWebClient(token=slack.bot_token, base_url=slack.base_url)


@pytest.fixture
def uploads(client: AsyncWebClient, tmp_path: Path) -> Uploads:
    return Uploads(client, tmp_path / "files")


def offline(folder: Path, **more: int) -> Uploads:
    return Uploads(AsyncWebClient(token="xoxb-lab"), folder / "files", **more)


def shared(*files: dict[str, Any]) -> tuple[File, ...]:
    """As an event carries them."""
    heard = sentence(sent.message("look", files=files, thread_ts="100.1"), sent.BOT_USER)
    assert heard is not None
    return heard.files


def notes(given: Any) -> str:
    assert all(note.en and note.zh != note.en for note in given.notes)
    return "\n".join(note.en for note in given.notes)


# --- fetching -----------------------------------------------------------------------------


async def test_a_shared_log_is_read_like_the_file_itself(slack: Slack, uploads: Uploads) -> None:
    given = await uploads.fetch(PLACE, shared(slack.add_file("kern.log", LOG)))
    (path,) = given.paths
    assert given.notes == ()
    assert path.read_bytes() == LOG
    origin = uploads.origin(given.paths)
    assert origin == Origin(inputs=(str(path),))
    assert uploads.owns(str(path))
    reading = read(origin.logs, origin.inputs)
    assert [o.source.line for o in reading.observations if o.fact == "xid" and o.status is Status.OK] == [1]
    seen = uploads.told(
        Seen("", reading.observations, notes=(f"{path}: cut",), sources=reading.sources, cut=(str(path),))
    )
    assert {str(o.source) for o in seen.observations if o.fact == "xid"} == {"kern.log:1", "kern.log"}
    assert (seen.notes, seen.sources, seen.cut) == (("kern.log: cut",), ("kern.log",), ("kern.log",))
    assert str(uploads.folder) not in repr(seen)


async def test_the_folder_is_private_and_names_lead_nowhere(slack: Slack, uploads: Uploads) -> None:
    names = [
        "../../etc/passwd",
        "/etc/passwd",
        "-rf",
        ".bashrc",
        "a\0b\n.log",
        "x" * 300 + ".json.gz",
        "日志 rank3.log",
        "..",
        "",
    ]
    files = shared(*(slack.add_file(name, LOG + str(n).encode()) for n, name in enumerate(names)))
    # the lab's own addresses would hold the names: only the file id counts there
    files = tuple(f._replace(url=f"{slack.root}/files-pri/{sent.TEAM}-{f.id}/x") for f in files)
    given = await uploads.fetch(PLACE, files)
    assert notes(given) == ""
    assert [path.read_bytes() for path in given.paths] == [LOG + str(n).encode() for n in range(len(names))]
    for path in given.paths:
        assert path.resolve() == path
        assert len(path.relative_to(uploads.folder).parts) == 3
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert uploads.owns(str(path))
    assert [path.name for path in given.paths[:5]] == ["etc passwd", "etc passwd-2", "rf", "bashrc", "ab .log"]
    assert given.paths[5].name.endswith(".json.gz")
    assert given.paths[6].name == "日志 rank3.log"
    for folder in (uploads.folder, given.paths[0].parent, given.paths[0].parent.parent):
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert not [name for name in given.paths[0].parent.parent.iterdir() if name.name.startswith(".part")]


async def test_what_was_fetched_is_not_fetched_again(slack: Slack, client: AsyncWebClient, tmp_path: Path) -> None:
    files = shared(slack.add_file("a.log", LOG), slack.add_file("a.log", LOG + b"x"))
    first = await Uploads(client, tmp_path / "files").fetch(PLACE, files)
    slack.files.clear()
    again = Uploads(client, tmp_path / "files")  # after a restart
    both = await asyncio.gather(again.fetch(PLACE, files), again.fetch(PLACE, files))
    assert tuple(both) == (first, first)
    assert [path.name for path in first.paths] == ["a.log", "a-2.log"]
    elsewhere = await again.fetch(OTHER, files[:1])
    assert "does not have it any more (HTTP 404)" in notes(elsewhere)


async def test_a_file_without_an_address_is_asked_for(slack: Slack, uploads: Uploads) -> None:
    known = slack.add_file("kern.log", LOG)
    (file,) = shared({"id": known["id"], "mode": "file_access", "file_access": "check_file_info"})
    given = await uploads.fetch(PLACE, [file, file._replace(id="F0NONE")])
    assert [path.name for path in given.paths] == ["kern.log"]
    assert notes(given) == "a file: Slack does not show it: file_not_found"
    assert [call.method for call in slack.calls] == ["files.info"] * 2


async def test_what_cannot_be_had_is_said(slack: Slack, uploads: Uploads) -> None:
    (file,) = shared(slack.add_file("k.log", LOG))
    empty = file._replace(id="F1", size=0, url=shared(slack.add_file("e.log", b""))[0].url, name="e.log")
    kinds = [file._replace(mode=mode) for mode in ("external", "tombstone", "hidden_by_limit")]
    given = await uploads.fetch(PLACE, [*kinds, empty, *[file._replace(id=f"F{n}") for n in range(20)]])
    assert len(given.paths) == 16
    said = notes(given).split("\n")
    assert [line.partition(": ")[2].partition(":")[0] for line in said[:3]] == [
        "it is kept by another service, not by Slack", "it was deleted", "the plan of the workspace hides it",
    ]  # fmt: skip
    assert said[3:] == ["e.log: it is empty", "4 more files were left out: at most 20 of one message are read"]


async def test_the_login_page_is_not_taken_for_the_file(slack: Slack, tmp_path: Path) -> None:
    stranger = AsyncWebClient(token="xoxb-other", base_url=slack.base_url)
    given = await Uploads(stranger, tmp_path / "files").fetch(PLACE, shared(slack.add_file("k.log", LOG)))
    assert given.paths == ()
    assert "k.log: Slack shows its login page instead of it" in notes(given)
    assert list((tmp_path / "files").rglob("*.log")) == []


async def test_larger_than_the_thread_may_hold(slack: Slack, client: AsyncWebClient, tmp_path: Path) -> None:
    uploads = Uploads(client, tmp_path / "files", most=100 << 10)
    big = shared(slack.add_file("big.log", b"x" * (60 << 10)), slack.add_file("more.log", b"y" * (60 << 10)))
    given = await uploads.fetch(PLACE, big)
    assert [path.name for path in given.paths] == ["big.log"]
    assert "more.log: it is larger than the 40 KiB that are left" in notes(given)
    lied = await uploads.fetch(PLACE, [big[1]._replace(size=5)])  # announced small
    assert "more.log: it is larger than the 40 KiB that are left" in notes(lied)
    assert (await uploads.fetch(OTHER, big[1:])).notes == ()
    assert uploads.paste(PLACE, "z" * (30 << 10)).stat().st_size == 30 << 10
    with pytest.raises(FilesError, match="larger than the 10 KiB") as caught:
        uploads.paste(PLACE, "z" * (30 << 10) + "!")
    assert "另开话题" in caught.value.in_("zh")


async def test_another_size_than_announced_is_read_and_said(slack: Slack, uploads: Uploads) -> None:
    (file,) = shared(slack.add_file("snippet.txt", LOG))
    given = await uploads.fetch(PLACE, [file._replace(size=7)])
    assert given.paths[0].read_bytes() == LOG
    assert f"announced 7 bytes and sent {len(LOG)}" in notes(given)


# --- what it is about ---------------------------------------------------------------------


def kept(uploads: Uploads, name: str, content: bytes) -> Path:
    """As `fetch` leaves it."""
    thread = uploads.folder / _kept.digest("\0".join(PLACE), 32)
    with _kept.incoming(thread) as (stream, part):
        stream.write(content)
        stream.flush()
        return _kept.placed(thread, thread / _kept.digest(name, 16), part, name)


def packed(folder: Path, kind: str) -> bytes:
    bundle, out = ROOT / "assistant/demos/off-the-bus/bundle", folder / f"b.{kind}"
    if kind == "zip":
        with zipfile.ZipFile(out, "w") as archive:
            for path in sorted(bundle.rglob("*")):
                archive.write(path, path.relative_to(bundle.parent))
    else:
        with tarfile.open(out, "w:gz") as tar:
            tar.add(bundle, "bundle")
    return out.read_bytes()


@pytest.mark.parametrize("kind", ["tar.gz", "zip"])
def test_a_bundle_is_a_machine_and_the_rest_stands_beside_it(tmp_path: Path, kind: str) -> None:
    uploads = offline(tmp_path)
    bundle = kept(uploads, "renamed.txt", packed(tmp_path, kind))
    log = kept(uploads, "kern.log", LOG)
    assert uploads.origin([log, bundle]) == Origin(bundle=str(bundle), inputs=(str(log),))
    other = kept(uploads, "second.txt", bundle.read_bytes())
    with pytest.raises(FilesError, match=r"renamed\.txt, second\.txt: each is a recording") as caught:
        uploads.origin([bundle, log, other])
    assert str(tmp_path) not in str(caught.value) + caught.value.in_("zh")


def test_a_bug_report_a_trace_and_outputs_are_told_by_content(tmp_path: Path) -> None:
    uploads = offline(tmp_path)
    report = kept(uploads, "a", gzip.compress((ROOT / "tests/captures/app/nvidia-bug-report.log").read_bytes()))
    trace = kept(uploads, "rank0.json", Path(compute_bound().save(tmp_path / "rank0.json")).read_bytes())
    smi = kept(uploads, "smi", (ROOT / "tests/captures/smi/hopper-590-sick.txt").read_bytes())
    zipped = kept(uploads, "logs.zip", (tmp_path / "l.zip").read_bytes() if _zip(tmp_path / "l.zip") else b"")
    damaged = kept(uploads, "cut.gz", gzip.compress(LOG)[:20])
    origin = uploads.origin([trace, report, smi, zipped, damaged])
    assert origin == Origin(bundle=str(report), inputs=(str(trace), str(smi), str(zipped), str(damaged)))
    kinds = dict(read((), origin.inputs[:2]).kinds)
    assert kinds[str(smi)] == ("nvidia-smi-q",)
    assert len(kinds[str(trace)]) == 1


def _zip(path: Path) -> bool:
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("kern.log", LOG)
    return True


def test_a_pasted_log_is_a_file(tmp_path: Path) -> None:
    uploads = offline(tmp_path)
    path = uploads.paste(PLACE, OFF_BUS + "\ud83d")
    assert path == uploads.paste(PLACE, OFF_BUS + "\ud83d")
    assert path.read_bytes() == LOG + b"?"
    assert uploads.shown(str(path)) == "pasted.log"
    assert uploads.paste(PLACE, "another").name == "pasted-2.log"
    assert uploads.paste(OTHER, OFF_BUS).parent.parent != path.parent.parent
    found = [o for o in read((), uploads.origin([path]).inputs).observations if o.fact == "xid"]
    assert [o.source.line for o in found if o.status is Status.OK] == [1]


# --- whose file it is ---------------------------------------------------------------------


def test_nothing_else_of_the_machine_is_owned(tmp_path: Path) -> None:
    uploads = offline(tmp_path)
    mine = uploads.paste(PLACE, OFF_BUS)
    assert uploads.owns(str(mine))
    link = mine.parent / "link"
    link.symlink_to("/etc/passwd")
    beside = tmp_path / "files-of-others" / "a" / "b"
    beside.mkdir(parents=True)
    (beside / "c").write_text("x")
    for path in (
        "/etc/passwd", "", "-", ".", "\0", "x" * 5000, str(link), str(mine.parent), str(uploads.folder), str(mine) + "x",
        f"{mine.parent}/../../../../../../../../etc/passwd", str(beside / "c"), f"{uploads.folder}/../files-of-others/a/b/c",
    ):  # fmt: skip
        assert not uploads.owns(path), path


def test_no_path_of_this_machine_is_shown(tmp_path: Path) -> None:
    uploads = offline(tmp_path)
    path = uploads.paste(PLACE, OFF_BUS)
    with pytest.raises(InputError) as caught:
        read((), [str(path.with_name("gone.log"))])
    assert uploads.shown(caught.value.message) == "gone.log: no such file"
    assert uploads.shown(f"{path}:3 and {path}") == "pasted.log:3 and pasted.log"
    assert uploads.shown(f"of {uploads.folder}.") == "of ."
    for text in ("/etc/passwd", "kern.log", f"{uploads.folder}-other/x", "", "gpu-12"):
        assert uploads.shown(text) == text


@settings(max_examples=60)
@given(st.text(max_size=300))
def test_any_name_becomes_one_that_is_a_file_name(name: str) -> None:
    safe = _kept.named(name)
    assert safe not in (".", "..")
    assert "/" not in safe
    assert safe[0] not in ".-"
    assert safe.isprintable()
    assert 0 < len(os.fsencode(safe)) <= _kept.BYTES
    assert _kept.named(safe) == safe or len(safe) > 70


# --- for how long -------------------------------------------------------------------------


def test_threads_are_forgotten_by_age_and_when_there_is_too_much(tmp_path: Path) -> None:
    uploads = offline(tmp_path, most=1000, days=7)
    places = [Place("T", "C1", str(n)) for n in range(20)]
    paths = [uploads.paste(place, f"{n:03}" * 300) for n, place in enumerate(places)]  # 900 bytes each
    now = time.time()
    for n, path in enumerate(paths):
        os.utime(path.parent.parent, (now - 100 + n,) * 2)
    old = paths[19].parent.parent
    os.utime(old, (now - 8 * 86_400,) * 2)
    uploads.prune(using=paths[0].parent.parent.name)
    alive = [n for n, path in enumerate(paths) if path.exists()]
    assert alive == [0, *range(3, 19)]  # the one in use, and the newest ones within 16 000 bytes
    assert not old.exists()
    again = offline(tmp_path, most=1000, days=0)
    assert list(again.folder.iterdir()) == []


def test_a_folder_that_cannot_be_used_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "files").write_text("in the way")
    with pytest.raises(FilesError, match="files cannot be kept") as caught:
        offline(tmp_path)
    assert "无法保存文件" in caught.value.in_("zh")
    assert str(tmp_path) not in str(caught.value)
