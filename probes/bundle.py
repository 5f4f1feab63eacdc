"""Bundles: everything that was read of a machine, raw, in files that people can open.

A bundle is a folder, or a .tar.gz, .tgz or .zip of one: ``manifest.json`` and the outputs under
``raw/``. Its truth is the raw output: observations are parsed from it each time. The format
is described in docs/bundles.md.
"""

from __future__ import annotations

import gzip
import io
import json
import re
import shutil
import tarfile
import tempfile
import zipfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from knowledge.errors import InputError, UsageError
from knowledge.observation import Status
from knowledge.record import dataclass
from knowledge.text import excerpt
from knowledge.whole import replace_file
from probes._bundle_store import ENTRIES, MANIFEST, MANIFEST_CAP, UNPACKED, opened, safe, too_large
from probes.host import SINGLE, Call, CallKind, Recording, Reply, by_call, in_order, iso, listed, not_asked

SCHEMA = "gpudiag/bundle/1"
FOLDER = "gpudiag-bundle"  # what an archive unpacks into
_SCHEMA = re.compile(r"gpudiag/bundle/(\d{1,6})")
_ISO = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?(Z|[+-]\d\d:\d\d)")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_HINT = "record it again with `gpudiag collect`"


# --- writing ------------------------------------------------------------------------------


def write(
    path: str | Path, host_name: str, replies: Iterable[Reply], as_of: int | None, version: str,
    recording: Recording | None = None, extra: Mapping[str, bytes] | None = None,
) -> None:  # fmt: skip
    """Write a bundle at once or not at all: an archive by the name's ending, else a folder.

    `recording` says which probes ran; `extra` are files for people that no replay reads, by their names.

    The same replies give the same bytes, in whatever order they come. An archive that exists is
    replaced, a folder that exists is not. ValueError when two replies answer one call; UsageError when
    the bundle would be too large to be read again or cannot be written.
    """
    target = Path(path)
    files = _files(host_name, list(by_call(replies).values()), as_of, version, recording) | dict(extra or {})
    if len(files) > 1 and sum(map(len, files.values())) > UNPACKED:
        raise UsageError(f"{target}: more than {UNPACKED >> 20} MiB were read", hint="read less of the logs")
    name = target.name.lower()
    try:
        if name.endswith((".tar.gz", ".tgz")):
            replace_file(target, _tar(files))
        elif name.endswith(".zip"):
            replace_file(target, _zip(files))
        else:
            _folder(target, files)
    except OSError as error:
        raise UsageError(f"{target} cannot be written: {error.strerror or error}") from None


def _files(
    host: str, replies: Sequence[Reply], as_of: int | None, version: str, recording: Recording | None = None
) -> dict[str, bytes]:
    """Content by path; the manifest first."""
    if len(replies) > ENTRIES:
        raise UsageError(f"{len(replies)} calls are more than a bundle holds ({ENTRIES})")
    entries, raw = [], {}
    for number, reply in enumerate(replies, 1):
        stem = f"raw/{number:04d}-{_slug(reply)}"
        entry: dict[str, Any] = {
            "kind": str(reply.kind),
            "call": reply.call[0] if reply.kind in SINGLE else list(reply.call),
            "file": None,
            "status": str(reply.status),
            "exit_code": reply.exit_code,
            "started": iso(reply.started),
            "cut": reply.cut,
            "detail": reply.detail,
        }
        if reply.data or reply.status is Status.OK:
            entry["file"] = f"{stem}.txt"
            raw[f"{stem}.txt"] = reply.data
        if reply.stderr:
            entry["stderr_file"] = f"{stem}.stderr.txt"
            raw[f"{stem}.stderr.txt"] = reply.stderr
        entries.append(entry)
    ran: dict[str, Any] = {"probes": list(recording.probes), "unasked": list(recording.unasked)} if recording else {}
    if recording and recording.options:
        ran["options"] = {name: dict(told) for name, told in sorted(recording.options.items())}
    manifest = {"schema": SCHEMA, "host": host, "as_of": iso(as_of), "gpudiag": version, **ran, "entries": entries}
    return {MANIFEST: (json.dumps(manifest, indent=1) + "\n").encode(), **raw}


def _slug(reply: Reply) -> str:
    """``nvidia-smi-q``: a name that people and every file system can read."""
    first, *rest = reply.call
    words = [first.rsplit("/", 1)[-1] if reply.kind is CallKind.COMMAND else first, *rest]
    return "-".join(re.findall(r"[a-z0-9._]*[a-z0-9]", " ".join(words).lower()))[:60].strip("-.") or "call"


def _folder(target: Path, files: Mapping[str, bytes]) -> None:
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise UsageError(f"{target} exists already", hint="name a folder that does not exist, or FILE.tar.gz")
    temporary = Path(tempfile.mkdtemp(prefix=f".{target.name}.", dir=target.parent))
    try:
        for name, data in files.items():
            (temporary / name).parent.mkdir(exist_ok=True)
            (temporary / name).write_bytes(data)
        temporary.replace(target)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _tar(files: Mapping[str, bytes]) -> bytes:
    out = io.BytesIO()
    with (
        gzip.GzipFile("", "wb", 6, out, mtime=0) as packed,
        tarfile.open(fileobj=packed, mode="w", format=tarfile.USTAR_FORMAT) as archive,
    ):
        for name, data in files.items():
            info = tarfile.TarInfo(f"{FOLDER}/{name}")
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return out.getvalue()


def _zip(files: Mapping[str, bytes]) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            info = zipfile.ZipInfo(f"{FOLDER}/{name}", (1980, 1, 1, 0, 0, 0))
            info.compress_type = zipfile.ZIP_DEFLATED
            info.create_system = 3  # Unix, wherever it is written
            info.external_attr = 0o100644 << 16
            archive.writestr(info, data)
    return out.getvalue()


# --- reading ------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Entry:
    reply: Reply  # without output
    file: str
    stderr_file: str


class BundleHost:
    """A machine as it was when a bundle was recorded.

    InputError when the bundle cannot be read, was tampered with, or is of a format that this gpudiag does
    not know. An output that is missing is a FAILED reply, and what nobody asked for is NOT_ASKED.
    """

    def __init__(self, path: str | Path, *, limit: int = UNPACKED) -> None:
        """`limit` is bytes of everything in it, unpacked."""
        self.path = str(path)
        self._store = opened(Path(path), limit)
        self._base = self._find_base()
        manifest = self._manifest()
        self.name = excerpt(_typed(manifest, "host", str, self.path))
        self.version = excerpt(_typed(manifest, "gpudiag", str, self.path, ""), 60)  # of the gpudiag that recorded it
        with _placed(f"{self.path}: {MANIFEST}: as_of"):
            self.as_of = from_iso(manifest.get("as_of"))
        self.recording = _recording(manifest, self.path)  # None for a bundle that was put together by hand
        entries = _typed(manifest, "entries", list, self.path)
        if len(entries) > ENTRIES:
            raise InputError(f"{self.path} has more than {ENTRIES} entries", hint="do not trust this file")
        self.skipped = 0  # entries of a kind that only newer versions know
        self._entries: dict[Call, _Entry] = {}
        for number, data in enumerate(entries, 1):
            self._add(number, data)
        files = {f for e in self._entries.values() for f in (e.file, e.stderr_file) if f}
        if sum(self._store.size(self._base + f) or 0 for f in files) > limit:
            raise too_large(self.path, limit)

    @property
    def replies(self) -> tuple[Reply, ...]:
        """All recordings, sorted by call."""
        return tuple(in_order(map(self._load, self._entries.values())))

    def read(self, path: str) -> Reply:
        """The recorded file."""
        return self._answer(CallKind.FILE, (path,))

    def run(self, argv: Sequence[str], *, deadline: float) -> Reply:  # noqa: ARG002 - part of the protocol
        """The recorded output; a recording needs no time."""
        return self._answer(CallKind.COMMAND, tuple(argv))

    def snapshot(self, name: str, *args: str, deadline: float) -> Reply:  # noqa: ARG002 - part of the protocol
        """The recorded output of a collector."""
        return self._answer(CallKind.SNAPSHOT, (name, *args))

    def files(self, pattern: str) -> list[str]:
        """The recorded listing; without one the recorded files that match, which need not be all there were."""
        key = (CallKind.LISTING, (pattern,))
        known = {k: e.reply for k, e in self._entries.items()}
        if key in known:
            known = {key: self._load(self._entries[key])}
        return listed(known, pattern)

    def extra(self, name: str) -> bytes | None:
        """A file that is no output, such as ``observations.jsonl``; None when there is none."""
        return self._store.read(self._base + name) if self._store.size(self._base + name) is not None else None

    def _answer(self, kind: CallKind, call: tuple[str, ...]) -> Reply:
        entry = self._entries.get((kind, call))
        return self._load(entry) if entry else not_asked(kind, call)

    def _load(self, entry: _Entry) -> Reply:
        reply = entry.reply
        data = self._raw(entry.file)
        stderr = self._raw(entry.stderr_file)
        lost = [f for f, content in ((entry.file, data), (entry.stderr_file, stderr)) if content is None]
        if lost:
            detail = f"{' and '.join(lost)} is missing from the bundle, or cannot be read"
            return replace(reply, status=Status.FAILED, data=data or b"", stderr=stderr or b"", detail=detail)
        return replace(reply, data=data or b"", stderr=stderr or b"")

    def _raw(self, file: str) -> bytes | None:
        return self._store.read(self._base + file) if file else b""

    def _find_base(self) -> str:
        """Where the manifest lies: at the top, or in the one folder that an archive unpacks into."""
        found = self._store.manifests()
        if len(found) != 1:
            why = f"more than one {MANIFEST}" if found else f"no {MANIFEST}"
            why_zh = f"其中有多个 {MANIFEST}" if found else f"其中没有 {MANIFEST}"
            raise InputError(
                f"{self.path} is no bundle: {why} in it", hint=f"a bundle's {MANIFEST} says what was read",
                zh=f"{self.path} 不是录制包：{why_zh}", hint_zh=f"录制包的 {MANIFEST} 说明读取了什么",
            )  # fmt: skip
        if (self._store.size(found[0]) or 0) > MANIFEST_CAP:
            raise InputError(
                f"{self.path}: {MANIFEST} is larger than {MANIFEST_CAP >> 20} MiB", hint="do not trust this file"
            )
        return found[0].removesuffix(MANIFEST)

    def _manifest(self) -> Mapping[str, Any]:
        where = f"{self.path}: {MANIFEST}"
        data = self._store.read(self._base + MANIFEST) or b""
        try:
            manifest = json.loads(data)
        except (ValueError, RecursionError) as error:
            raise InputError(f"{where} is no JSON: {error}", hint=_HINT, zh=f"{where} 不是 JSON：{error}") from None
        if not isinstance(manifest, dict):
            raise InputError(f"{where} is not a JSON object", hint=_HINT)
        schema = manifest.get("schema")
        if schema != SCHEMA:
            raise _unknown_schema(where, schema, manifest.get("gpudiag"))
        return manifest

    def _add(self, number: int, data: object) -> None:
        where = f"{self.path}: entry {number}"
        if not isinstance(data, dict):
            raise InputError(f"{where} is not a JSON object", hint=_HINT)
        if data.get("kind") not in list(CallKind):
            self.skipped += 1
            return
        entry = _entry(data, where)
        if entry.reply.key in self._entries:
            raise InputError(f"{where}: {entry.reply.title} is recorded twice", hint="do not trust this file")
        self._entries[entry.reply.key] = entry


def _entry(data: Mapping[str, Any], where: str) -> _Entry:
    kind = CallKind(data["kind"])
    call = data.get("call")
    words = [call] if kind in SINGLE else call
    if not isinstance(words, list) or not words or not all(isinstance(w, str) for w in words):
        wanted = "a path" if kind in SINGLE else "a list of words"
        raise InputError(f"{where}: call must be {wanted}, not {call!r:.80}", hint=_HINT)
    file, stderr_file = (_typed(data, key, str, where, "") for key in ("file", "stderr_file"))
    for name in (file, stderr_file):
        if name:
            safe(name, where)
    status = _typed(data, "status", str, where)
    if status not in list(Status):
        raise InputError(f"{where}: {status!r:.80} is no status", hint=_HINT)
    with _placed(where):
        reply = Reply(
            kind, tuple(words), Status(status), exit_code=_typed(data, "exit_code", int, where),
            cut=_typed(data, "cut", bool, where, False), started=from_iso(data.get("started")),
            detail=_typed(data, "detail", str, where, ""),
        )  # fmt: skip
    if reply.status is Status.NOT_ASKED and (file or stderr_file):
        raise InputError(f"{where} has output of a call that was not made", hint=_HINT)
    return _Entry(reply, file, stderr_file)


def _recording(manifest: Mapping[str, Any], where: str) -> Recording | None:
    if manifest.get("probes") is None:
        return None
    names = [_typed(manifest, key, list, where, []) for key in ("probes", "unasked")]
    if not all(isinstance(name, str) for some in names for name in some):
        raise InputError(f"{where}: probes must be a list of names", hint=_HINT)
    options = _typed(manifest, "options", dict, where, {})
    told = [word for given in options.values() if isinstance(given, dict) for pair in given.items() for word in pair]
    if not all(isinstance(given, dict) for given in options.values()) or not all(isinstance(w, str) for w in told):
        raise InputError(f"{where}: options must name probes and what they were told", hint=_HINT)
    return Recording(tuple(names[0]), tuple(names[1]), options)


_REQUIRED = ("host", "entries", "status")


def _typed(data: Mapping[str, Any], key: str, type_: type, where: str, default: object = None) -> Any:
    """The value under `key`, or `default` when there is none and none is needed. InputError when it is no `type_`."""
    value = data.get(key)
    if value is None and key not in _REQUIRED:
        return default
    if not isinstance(value, type_) or (type_ is int and isinstance(value, bool)):
        raise InputError(f"{where}: {key} must be of type {type_.__name__}, not {value!r:.80}", hint=_HINT)
    return value


@contextmanager
def _placed(where: str) -> Iterator[None]:
    """A ValueError within becomes an InputError that tells the place."""
    try:
        yield
    except (ValueError, OverflowError) as error:
        raise InputError(f"{where}: {error}", hint=_HINT) from None


def _unknown_schema(where: str, schema: object, version: object) -> InputError:
    found = _SCHEMA.fullmatch(schema) if isinstance(schema, str) else None
    if not found:
        return InputError(f"{where} is not of a gpudiag bundle: schema is {schema!r:.80}, not {SCHEMA!r}", hint=_HINT)
    wanted = (
        f"gpudiag {excerpt(version, 60)}" if isinstance(version, str) and version else "the gpudiag that recorded it"
    )
    return InputError(
        f"{where} has format {found[0]}; this gpudiag reads {SCHEMA}", hint=f"use {wanted} or a newer one"
    )


# --- times --------------------------------------------------------------------------------


def from_iso(text: object) -> int | None:
    """The opposite of `iso`; offsets from UTC are understood too. ValueError when it is not a time."""
    if text is None:
        return None
    found = _ISO.fullmatch(text) if isinstance(text, str) else None
    if not found:
        raise ValueError(f"{text!r:.60} is not a time such as 2026-03-03T12:00:00Z")
    moment = datetime.fromisoformat(found[1] + found[3].replace("Z", "+00:00")) - _EPOCH
    return (moment.days * 86_400 + moment.seconds) * 10**9 + int((found[2] or "").ljust(9, "0"))
