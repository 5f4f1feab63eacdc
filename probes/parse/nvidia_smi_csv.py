"""CSV of ``nvidia-smi --query-gpu``, ``--query-compute-apps``, ``--query-retired-pages`` and
``--query-remapped-rows`` (with the header line, or below the command that asked for them; with or without units; without either
what the values tell by themselves), and dmon and pmon listings."""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Sequence
from functools import lru_cache

from knowledge.identity import UNKNOWN_PCI, normalise_pci
from knowledge.language import Text
from knowledge.observation import Observation, Status, Subject, gpu
from knowledge.record import dataclass
from knowledge.text import digits
from probes.base import Context, DocumentFormat, Line, lines_of
from probes.parse import _smi_errors, _smi_mon, _smi_nameless
from probes.parse._smi_emit import Emitter, cleaned
from probes.parse._smi_fields import GPU, HEAD, MASK_BITS, MASKS, Field, mebibytes
from probes.parse._smi_values import LOST, RESET, Reading, absent, not_understood, text_value, unitless

NAME, REVISION = "nvidia-smi-csv", 5
# $ nvidia-smi --query-gpu=index,utilization.gpu,power.draw --format=csv,noheader,nounits -l 5
_ASKED = re.compile(r".{0,200}\bnvidia-smi\b.{0,200}--query-[a-z-]{3,20}[= ]([A-Za-z0-9_.,]{3,1500})(?:\s.{0,300})?")
_UNIT = re.compile(r"\s?\[([^\]]{1,8})\]$")
_APPS = {"pid", "process_name", "name", "used_gpu_memory", "used_memory", "gpu_util", "gpu_utilization",
         "mem_utilization", "max_memory_usage", "time"}  # fmt: skip
_PAGES = {"retired_pages.address", "retired_pages.timestamp", "retired_pages.cause"}
_KNOWN = {name for row in (*HEAD, *GPU) for name in row.csv} | _APPS | _PAGES | {"timestamp"}
# Groups of names that --help-query-gpu knows and this parser does not read.
_FAMILIES = (
    "vgpu_", "driver_model.", "gom.", "inforom.", "encoder.stats.", "clocks.", "power_smoothing.", "platform.",
    "protected_memory.", "gsp.mode.", "pci.", "ecc.errors.", "dramencryption.", "accounting.", "display_", "module.",
    "power.", "edpp_", "clocks_event_reasons", "clocks_throttle_reasons", "hostname", "reset_status.", "fabric.",
)  # fmt: skip
PROVIDES = tuple(sorted({
    *(row.fact for row in (*HEAD, *GPU) if row.csv), "gpu.nvml.reachable", "gpu.reset_required", "gpu.fan.state", "gpu.processes",
    "node.gpu.listed", "process.uses_gpu", "process.gpu_memory", "process.name", *_smi_errors.PROVIDES,
    *_smi_mon.PROVIDES,
}))  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Header:
    names: tuple[str, ...]
    units: tuple[str, ...]


def header_of(text: str) -> _Header | None:
    """Names and units of a CSV header, or of the command that asks for these columns; None when the line is neither."""
    asked = _ASKED.fullmatch(text[:2500])
    cells = [cell.strip() for cell in (asked[1] if asked else text).split(",")]
    names, units = [], []
    for cell in cells:
        unit = _UNIT.search(cell)
        units.append(unit[1] if unit else "")
        names.append((cell[: unit.start()] if unit else cell).lower())
    hits = sum(name in _KNOWN or name.startswith(_FAMILIES) for name in names)
    if hits < 1 or hits < 0.6 * len(names) or not any(name in _KNOWN for name in names):
        return None
    if len(names) == 1 and "." not in names[0] and "_" not in names[0]:
        return None  # one bare word such as "name" or "count" is no header
    return _Header(tuple(names), tuple(units))


def sniff(head: str) -> int:
    """95 when the first line is a query's header, 92 for a dmon or pmon listing, 80 for rows without a header."""
    lines = [line for line in head.splitlines() if line.strip()][:30]
    if not lines or "NVSMI LOG" in head:
        return 0
    if (found := header_of(lines[0])) is not None:
        if _ASKED.fullmatch(lines[0][:2500]) and not any(_below(line, found) for line in lines[1:2]):
            return 0  # the command alone
        return 95 if len(found.names) > 1 else 70
    if any(_smi_mon.heading(line) for line in lines[:2]):
        return 92 if any("idx" in line.lower() for line in lines[:4]) else 60
    return 80 if _smi_nameless.rows(cleaned(lines_of("\n".join(lines)))) else 0


def _below(line: str, asked: _Header) -> bool:
    """Whether `line` is what the command printed: its header, or as many cells as it asked for."""
    return header_of(line.strip()) is not None or _split(line, asked) is not None


def parse(text: str, context: Context) -> list[Observation]:
    """Observations of one or more query results, or of a listing."""
    emit = Emitter(context, NAME, REVISION)
    read(emit, cleaned(lines_of(text)))
    return emit.finish()


def read(emit: Emitter, lines: Sequence[Line]) -> None:
    """Add the facts of a query result or listing to `emit`."""
    _smi_errors.errors(emit, lines)
    if _smi_mon.monitor(emit, lines):
        return
    header: _Header | None = None
    rows: list[tuple[list[str], Line]] = []
    for line in lines:
        text = line.text.strip()
        if (found := header_of(text)) is not None:
            _result(emit, header, rows)
            header, rows = found, []
        elif header is not None and text:
            cells = _split(text, header)
            if cells is not None:
                rows.append((cells, line))
    _result(emit, header, rows)
    if header is None and (found_rows := _smi_nameless.rows(lines)):
        _nameless(emit, found_rows)


def _nameless(emit: Emitter, rows: Sequence[tuple[list[str], Line]]) -> None:
    """Rows of which only the values tell what they are; a GPU that answers with errors alone is one that does not answer."""
    names = _smi_nameless.names(rows)
    header = _Header(names, ("",) * len(names))
    _result(emit, header, rows)
    asked = {o.subject for o in emit.out if o.fact == "gpu.nvml.reachable"}
    reset = {o.subject for o in emit.out if RESET.search(o.detail)}
    for position, (cells, line) in enumerate(rows):
        subject = _subject(emit, header, cells, position)
        values = [absent(cell) or Reading(cell) for cell, name in zip(cells, names, strict=True) if name not in _FIXED]
        if subject not in asked:
            emit.answers(subject, values, line.number, line.text)
            asked.update(o.subject for o in emit.out[-1:] if o.fact == "gpu.nvml.reachable")
        if subject not in reset and any(RESET.search(cell) for cell in cells):
            emit.add("gpu.reset_required", subject, True, line.number, line.text)
            reset.add(subject)


_FIXED = ("index", "name", "uuid", "pci.bus_id", "memory.total")  # the driver knows them of a GPU that answers no more


def unread(text: str) -> list[tuple[int, Text]]:
    """The columns that have no name, and what stands in them; none where a header names them."""
    lines = cleaned(lines_of(text))
    if any(header_of(line.text.strip()) is not None for line in lines[:30]) or not (rows := _smi_nameless.rows(lines)):
        return []
    names = _smi_nameless.names(rows)
    cells, line = rows[0]
    of = ", ".join(f"{i} ({cells[i - 1]})" for i, name in enumerate(names, 1) if not name)
    if not of:
        return []
    en = f"its columns have no names, and several properties look like column {of}: print the names too (`--format=csv`, without noheader)"
    zh = f"各列没有名称，第 {of} 列的值对应多种属性：请连同列名一起输出（`--format=csv`，不加 noheader）"
    return [(line.number, Text(en, zh))]


def _split(text: str, header: _Header) -> list[str] | None:
    """Cells of a row; commas within a process name stay in it. None for lines that are no rows."""
    cells = [cell.strip() for cell in text.split(",")]
    extra = len(cells) - len(header.names)
    if extra > 0 and "process_name" in header.names:
        at = header.names.index("process_name")
        cells[at : at + extra + 1] = [", ".join(cells[at : at + extra + 1])]
    return cells if len(cells) == len(header.names) else None


def _result(emit: Emitter, header: _Header | None, rows: Sequence[tuple[list[str], Line]]) -> None:
    if header is None:
        return
    if "pid" in header.names:
        _apps(emit, header, rows)
    elif _PAGES & set(header.names):
        _pages(emit, header, rows)
    else:
        for position, (cells, line) in enumerate(rows):
            _gpu(emit, header, cells, line, position)
        if rows:  # with -l each GPU has a row for every look
            listed = {_subject(emit, header, cells, position) for position, (cells, _) in enumerate(rows)}
            emit.add(
                "node.gpu.listed", emit.node, len(listed), rows[0][1].number, f"{len(listed)} GPUs in {len(rows)} rows"
            )


def _cell(header: _Header, cells: Sequence[str], *names: str) -> str:
    return next((cells[header.names.index(n)] for n in names if n in header.names), "")


def _subject(emit: Emitter, header: _Header, cells: Sequence[str], position: int) -> Subject:
    """The GPU of a row: by slot, else by UUID, else by index, else unnamed."""
    address = _cell(header, cells, "pci.bus_id", "gpu_bus_id")
    if address and not normalise_pci(address).startswith(UNKNOWN_PCI):
        return emit.gpu(address)
    uuid = _cell(header, cells, "uuid", "gpu_uuid")
    if uuid and absent(uuid) is None:
        return gpu(uuid, emit.host)
    index = _cell(header, cells, "index")
    number = digits(index)
    return gpu(f"index:{number}" if number is not None else f"{UNKNOWN_PCI}row {position}", emit.host)


def _reading(row: Field, text: str, unit: str) -> Reading:
    """A cell; its unit stands behind the number, in the header, or nowhere (``nounits``)."""
    return unitless(row.convert, unit or row.unit)(text)


def _gpu(emit: Emitter, header: _Header, cells: Sequence[str], line: Line, position: int) -> None:
    emit.taken(_cell(header, cells, "timestamp"))
    subject = _subject(emit, header, cells, position)
    live: list[Reading] = []
    ahead = len(emit.out)
    for row, at in _columns(header.names):
        readings = [(_reading(row, cells[i], header.units[i]), i) for i in at]
        reading, i = next(((r, i) for r, i in readings if r.ok), readings[0])
        quoted = f"{header.names[i]}: {cells[i]}"
        if row in HEAD:
            if position == 0:
                emit.add(row.fact, emit.node, reading, line.number, quoted)
            continue
        emit.add(row.fact, subject, reading, line.number, quoted)
        if row.dynamic:
            live.append(reading)
        if row.fact == "gpu.fan.speed" and reading.status in (Status.OK, Status.FAILED):
            emit.add("gpu.fan.state", subject, "ok" if reading.ok else "error", line.number, quoted)
    _mask(emit, subject, header, cells, line, {o.fact for o in emit.out[ahead:]})
    _reachable(emit, subject, live, cells, line)


@lru_cache(maxsize=64)
def _columns(names: tuple[str, ...]) -> tuple[tuple[Field, tuple[int, ...]], ...]:
    """The properties that a header names, with the places of their columns."""
    found = ((row, tuple(names.index(name) for name in row.csv if name in names)) for row in (*HEAD, *GPU))
    return tuple((row, at) for row, at in found if at)


def _mask(
    emit: Emitter, subject: Subject, header: _Header, cells: Sequence[str], line: Line, told: Container[str]
) -> None:  # fmt: skip
    """The clock event reasons of the one word that holds them all, where no columns of the row `told` them."""
    name = next((n for n in MASKS if n in header.names), "")
    word = cells[header.names.index(name)] if name else ""
    bits = int(word, 16) if re.fullmatch(r"0x[0-9a-fA-F]{1,16}", word) else None
    missing = None if bits is not None else absent(word) or not_understood(word, "a mask")
    for reason, bit in MASK_BITS.items() if name else ():
        if (fact := f"gpu.clock.event.{reason}") not in told:
            emit.add(fact, subject, missing or bool((bits or 0) & bit), line.number, f"{name}: {word}")


def _reachable(
    emit: Emitter, subject: Subject, live: Sequence[Reading], cells: Iterable[str], line: Line
) -> None:  # fmt: skip
    lost = next((cell for cell in cells if LOST.search(cell)), None)
    if lost is not None:
        emit.add("gpu.nvml.reachable", subject, False, line.number, lost)
    else:
        emit.answers(subject, live, line.number, line.text)


def _apps(emit: Emitter, header: _Header, rows: Sequence[tuple[list[str], Line]]) -> None:
    accounted = any(n in header.names for n in ("max_memory_usage", "time"))
    for position, (cells, line) in enumerate(rows):
        if accounted:  # finished processes too: not a use of now
            return
        emit.taken(_cell(header, cells, "timestamp"))
        names = ("used_gpu_memory", "used_memory")
        at = next((header.names.index(n) for n in names if n in header.names), None)
        memory = None if at is None else unitless(mebibytes, header.units[at] or "MiB")(cells[at])
        pid = _cell(header, cells, "pid")
        named = {"process_name", "name"} & set(header.names)
        name = _cell(header, cells, "process_name", "name") if named else None
        emit.process(pid, _subject(emit, header, cells, position), memory, name=name, kind="C",
                     line=line.number, excerpt=line.text)  # fmt: skip


def _pages(emit: Emitter, header: _Header, rows: Sequence[tuple[list[str], Line]]) -> None:
    """One row a retired page; a row without an address says that there is nothing to list."""
    if "retired_pages.cause" not in header.names:
        return
    pages: dict[tuple[Subject, str], list[Reading]] = {}
    first: dict[tuple[Subject, str], Line] = {}
    for position, (cells, line) in enumerate(rows):
        emit.taken(_cell(header, cells, "timestamp"))
        cause = "double_bit" if "double" in _cell(header, cells, "retired_pages.cause").lower() else "single_bit"
        place = (_subject(emit, header, cells, position), cause)
        pages.setdefault(place, []).append(text_value(_cell(header, cells, "retired_pages.address")))
        first.setdefault(place, line)
    for (subject, cause), readings in pages.items():
        bad = next((r for r in readings if not r.ok), None)
        reading = bad or Reading(len(readings))
        line = first[subject, cause]
        emit.add(f"gpu.retired_pages.{cause}", subject, reading, line.number, line.text)


FORMAT = DocumentFormat(NAME, "nvidia-smi --query CSV, dmon or pmon", REVISION, PROVIDES, sniff, parse, unread=unread)
