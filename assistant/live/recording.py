"""Frames in a bundle: the file ``live.jsonl``, schema ``gpudiag/live/1``.

The first line is the header, each line after it one frame. What is the same as in the frame before is left out: of a GPU its
names and what it cannot tell, and the processes as a whole. So lines are read from the first to the last.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from assistant.live.frames import METRICS, Frame, Gpu, Instance, Proc
from knowledge.errors import InputError
from knowledge.language import Text

if TYPE_CHECKING:
    from probes.bug_report_host import BugReportHost
    from probes.bundle import BundleHost

NAME = "live.jsonl"
SCHEMA = "gpudiag/live/1"
LIMIT = 100_000  # frames of one recording: a day at one a second
_DIGITS = 3  # behind the point of a value: no reading is finer
_HINT = "record it again with `gpudiag collect --for`"


class Recorder:
    """Takes frames and writes them down."""

    def __init__(self, *, commands: bool = True, note: str = "") -> None:
        """`commands`: whether command lines are kept. `note` stands in the header, such as that nobody measured this."""
        self._commands, self._note = commands, note
        self._lines: list[bytes] = []
        self._host = ""
        self._known: dict[str, dict[str, Any]] = {}  # of a GPU: what was written last of what seldom changes
        self._processes: list[dict[str, Any]] = []
        self._last = -1

    def add(self, frame: Frame) -> None:
        """One more frame. One that is not newer than the last, and any beyond `LIMIT`, is left out."""
        if frame.at <= self._last or len(self._lines) >= LIMIT:
            return
        self._last = frame.at
        self._host = self._host or frame.host
        row: dict[str, Any] = {"at": frame.at, "gpus": [self._gpu(g, frame.at) for g in frame.gpus]}
        processes = [_process(p, self._commands) for p in frame.processes]
        if processes != self._processes or not self._lines:
            row["processes"] = self._processes = processes
        if frame.trouble:
            row["trouble"] = [frame.trouble.en, frame.trouble.zh]
        self._lines.append(_line(row))

    def __len__(self) -> int:
        return len(self._lines)

    def data(self) -> bytes:
        """The file; empty when there is no frame."""
        header = {"schema": SCHEMA, "host": self._host, "frames": len(self._lines)}
        if self._note:
            header["note"] = self._note
        return _line(header) + b"".join(self._lines) if self._lines else b""

    def _gpu(self, g: Gpu, at: int) -> dict[str, Any]:
        row: dict[str, Any] = {"pci": g.pci}
        seldom: dict[str, Any] = {"index": g.index, "uuid": g.uuid, "name": g.name, "missing": dict(g.missing)}
        known = self._known.setdefault(g.pci, {})
        if g.instances or known.get("instances"):
            seldom["instances"] = [
                [i.id, i.index, i.profile, i.uuid, i.memory_used, i.memory_total] for i in g.instances
            ]
        row.update({name: value for name, value in seldom.items() if name not in known or known[name] != value})
        known.update(seldom)
        row["values"] = {name: _short(value) for name, value in g.values.items()}
        if g.reasons:
            row["reasons"] = list(g.reasons)
        if g.state:
            row["state"] = g.state
        if g.at != at:
            row["at"] = g.at
        return row


def _short(value: float) -> float | int:
    rounded = round(value, _DIGITS)
    return int(rounded) if rounded == int(rounded) else rounded


def _process(p: Proc, commands: bool) -> dict[str, Any]:
    row: dict[str, Any] = {"pid": p.pid, "gpus": {pci: list(use) for pci, use in p.gpus.items()}}
    for name in ("name", "command", "user", "pod", "job", "rank", "container"):
        text = getattr(p, name)
        if text and (commands or name != "command"):
            row[name] = text
    if p.instances:
        row["instances"] = dict(p.instances)
    return row


def _line(row: Mapping[str, Any]) -> bytes:
    return json.dumps(row, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass") + b"\n"


# --- reading ------------------------------------------------------------------------------


def frames_of(path: str) -> list[Frame]:
    """The frames of the bundle at `path`, oldest first; none where none were recorded. InputError when it cannot be read."""
    from probes.bug_report_host import opened_bundle

    return frames_in(opened_bundle(path), path)


def frames_in(host: BundleHost | BugReportHost, path: str) -> list[Frame]:
    """The frames of an opened recording; `path` is what it is called in errors."""
    from probes.bundle import BundleHost

    data = host.extra(NAME) if isinstance(host, BundleHost) else None
    return list(read(data, f"{path}: {NAME}")) if data else []


def read(data: bytes, where: str = NAME) -> Iterator[Frame]:
    """The frames of such a file. InputError with the line that is none; a last line that was cut off is left out."""
    lines = data.split(b"\n")
    whole = lines[-1] == b""
    rows = lines[:-1] if whole else lines
    header = _row(rows[0], f"{where}:1")
    if header.get("schema") != SCHEMA:
        raise InputError(f"{where}: schema is {header.get('schema')!r:.80}, not {SCHEMA!r}", hint=_HINT)
    if len(rows) - 1 > LIMIT:
        raise InputError(f"{where} has more than {LIMIT} frames", hint="do not trust this file")
    reader = _Reader(str(header.get("host", "")))
    for number, row in enumerate(rows[1:], 2):
        if number == len(rows) and not whole:
            return
        here = f"{where}:{number}"
        try:
            yield reader.frame(_row(row, here))
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
            raise InputError(f"{here} is no frame: {error!r:.120}", hint=_HINT) from None


def _row(line: bytes, where: str) -> dict[str, Any]:
    try:
        row = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{where}: {error}", hint=_HINT) from None
    if not isinstance(row, dict):
        raise InputError(f"{where} is not a JSON object", hint=_HINT)
    return row


class _Reader:
    """Gives each frame what the frames before it said."""

    def __init__(self, host: str) -> None:
        self._host = host
        self._known: dict[str, dict[str, Any]] = {}
        self._processes: tuple[Proc, ...] = ()
        self._last = -1

    def frame(self, row: Mapping[str, Any]) -> Frame:
        """ValueError and its kin for what is none."""
        at = _moment(row["at"])
        if at <= self._last:
            raise ValueError("it is not newer than the frame before")
        self._last = at
        if "processes" in row:
            self._processes = tuple(map(_read_process, row["processes"]))
        trouble = row.get("trouble") or ["", ""]
        gpus = tuple(self._gpu(g, at) for g in row["gpus"])
        return Frame(at, self._host, gpus, self._processes, Text(str(trouble[0]), str(trouble[1])))

    def _gpu(self, row: Mapping[str, Any], at: int) -> Gpu:
        pci = str(row["pci"])
        known = self._known.setdefault(pci, {"index": None, "uuid": "", "name": "", "missing": {}, "instances": ()})
        if "missing" in row:
            known["missing"] = {str(k): str(v) for k, v in row["missing"].items()}
        known.update({k: row[k] for k in ("index", "uuid", "name") if k in row})
        if "instances" in row:
            known["instances"] = tuple(map(_read_instance, row["instances"]))
        return Gpu(
            pci, known["index"] if known["index"] is None else int(known["index"]), str(known["uuid"]), str(known["name"]),
            self._values(known, row["values"]), known["missing"], tuple(map(str, row.get("reasons", ()))),
            str(row.get("state", "")), _moment(row.get("at", at)), known["instances"],
        )  # fmt: skip

    @staticmethod
    def _values(known: dict[str, Any], told: Mapping[str, Any]) -> dict[str, float]:
        """As in the frame before where they are the same: a recording holds a million of them."""
        before = known.get("values", {})
        values = {_KEYS.get(k, k): before[k] if before.get(k) == v else float(v) for k, v in told.items()}
        known["values"] = values
        return values


_KEYS = {key: key for key in METRICS}


def _moment(value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < 1 << 63:
        raise ValueError(f"{value!r:.40} is no time")
    return value


def _read_instance(row: Sequence[Any]) -> Instance:
    name, index, profile, uuid, used, total = row
    return Instance(
        str(name), None if index is None else int(index), str(profile), str(uuid), None if used is None else float(used),
        None if total is None else float(total),
    )  # fmt: skip


def _read_process(row: Mapping[str, Any]) -> Proc:
    gpus = {
        str(pci): (None if memory is None else int(memory), None if share is None else float(share))
        for pci, (memory, share) in row["gpus"].items()
    }
    texts = {name: str(row.get(name, "")) for name in ("name", "command", "user", "pod", "job", "rank", "container")}
    return Proc(int(row["pid"]), texts["name"], texts["command"], texts["user"], gpus, texts["pod"], texts["job"], texts["rank"],
                texts["container"], {str(k): str(v) for k, v in row.get("instances", {}).items()})  # fmt: skip


def record(frames: Iterable[Frame], **options: Any) -> bytes:
    """The file that holds `frames`; options as for `Recorder`."""
    recorder = Recorder(**options)
    for frame in frames:
        recorder.add(frame)
    return recorder.data()
