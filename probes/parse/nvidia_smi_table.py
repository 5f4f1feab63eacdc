"""The summary table of plain ``nvidia-smi`` (drivers 325 to 590) and the list of ``nvidia-smi -L``.

The layout widened over the years; cells are found by the bars, words within a cell by blanks.
Error sentences that come instead of the table are read here too, and rows that were picked out of it (``nvidia-smi | grep -A1 H100``):
they tell of their GPUs, and not how many there are.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from knowledge.identity import UNKNOWN_PCI
from knowledge.lazy import lazy
from knowledge.observation import Observation, Scope, Status, Subject, gpu
from probes.base import Context, DocumentFormat, Line, lines_of
from probes.parse import _smi_errors
from probes.parse._smi_emit import Emitter, cleaned, local_time, mig_id
from probes.parse._smi_fields import celsius, compute_mode, count, mebibytes, percent, watts
from probes.parse._smi_values import LOST, Reading, absent, boolean, not_understood, pstate, text_value

NAME, REVISION = "nvidia-smi", 6

# | NVIDIA-SMI 590.48.01              Driver Version: 590.48.01      CUDA Version: 13.1     |
# | NVIDIA-SMI 384.59                 Driver Version: 384.59                    |
_HEAD = lazy(r"NVIDIA-SMI\s{1,20}(\S{1,30})\s{1,60}(?:KMD |Driver )Version:\s{1,10}(\S{1,30})")
_CUDA = lazy(r"CUDA (?:UMD )?Version:\s{1,10}(\S{1,20})")
# |   0  NVIDIA H100 80GB HBM3          On  |   00000000:00:09.0 Off |                    0 |
_ROW1 = lazy(r"\s*(\d{1,3})\s{1,6}(\S.{0,80}?)\s{1,60}(On|Off|N/A|ERR!|TCC|WDDM|MCDM)\s*")
# | N/A   34C    P0             71W /  700W |       1MiB /  81559MiB |      0%      Default |
# |ERR!  ERR! ERR!    ERR! / ERR! |      1MiB / 40960MiB |    ERR!      Default |
_STATE = lazy(
    r"\s{0,4}(?:\d{1,3}%|N/A|ERR!)\s{1,8}(?:-?\d{1,3}C|N/A|ERR!)\s{1,8}(?:P\d{1,2}|N/A|ERR!)\s{1,40}\S{1,8}\s?/\s{0,6}\S{1,8}\s{0,20}"
)
_MEMORY = lazy(r"\s{0,40}\S{1,12}MiB\s?/\s{0,8}\S{1,12}MiB\s{0,20}")
_BUS = lazy(r"\s*([0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-9A-Fa-f])\s{1,20}(\S{1,8})\s*")
# |    0   N/A  N/A           11327      C   /root/tools/memhog                     2566MiB |
# |    0       489      G   /usr/bin/X                                  1025MiB |
_PROCESS = lazy(
    r"\|\s{1,8}(\d{1,3})\s{1,12}(?:(N/A|\d{1,3})\s{1,8}(N/A|\d{1,3})\s{1,20})?(\d{1,10})\s{1,10}"
    r"(C\+G|M\+C\+G|M\+C|C|G|M)\s{1,8}(.{0,200})\|"
)
# |    0            Not Supported                                               |
_PROCESS_NOT = lazy(r"\|\s{1,8}(\d{1,3})\s{1,30}(Not Supported|N/A|ERR!)\s{1,90}\|")
# |  0    2   0   0  |              26MiB / 40448MiB    | 60      0 |  3   0    3    0    3 |
_MIG = lazy(
    r"\|\s{0,4}(\d{1,3})\s{1,6}(\d{1,3})\s{1,6}(\d{1,3})\s{1,6}(\d{1,3})\s{1,6}\|\s{0,40}(\S{1,12})\s?/\s{0,6}(\S{1,12})\s{1,20}\|"
    r"\s{0,8}(\S{1,6})\s{1,12}(\S{1,12})\s{1,4}\|"
)
# GPU 0: NVIDIA H100 80GB HBM3 (UUID: GPU-...)
LISTED = lazy(r"\s{0,8}GPU\s{1,3}(\d{1,3}):\s(.{1,100}?)(?:\s\(UUID:\s(GPU-[0-9a-fA-F-]{8,60})\))?\s*")
# MIG 3g.40gb     Device  0: (UUID: MIG-...)
_MIG_LISTED = lazy(r"\s{1,8}MIG\s(\S{1,20})\s{1,10}Device\s{1,4}(\d{1,3}):\s\(UUID:\s(MIG-[0-9a-fA-F/GPU-]{8,90})\)\s*")


def sniff(head: str) -> int:
    """100 on the table's headline, 90 on a GPU list, 95 on an error sentence alone, 85 on rows of the table, 75 on a list with a line
    of prose or a date right above or below it."""
    if _HEAD.search(head) and "NVSMI LOG" not in head:
        return 100
    if score := _smi_errors.sniff(head):
        return score
    lines = [line for line in head.splitlines() if line.strip()][:40]
    if lines and all(map(_is_listed, lines)):
        return 90
    if any("|" in x and (_is_first(x) or _is_second(x)) for x in lines):
        return 85
    return 75 if lines and _is_list_in_prose(lines) else 0


def _is_listed(text: str) -> bool:
    """Whether a line is one of ``nvidia-smi -L``."""
    return bool("UUID" in text and LISTED.fullmatch(text)) or bool(_MIG_LISTED.fullmatch(text))


def _is_list_in_prose(lines: Sequence[str]) -> bool:
    """Whether all lines but the first, the last, or both are a list of GPUs; what is indented is of an output of another kind."""
    inner = lines[not _is_listed(lines[0]) : len(lines) - (not _is_listed(lines[-1]))]
    return (
        bool(inner)
        and all(map(_is_listed, inner))
        and not any(x[0].isspace() for x in (lines[0], lines[-1]) if not _is_listed(x))
    )


def _is_first(text: str) -> bool:
    """Whether a line is the first row of a GPU: index, name, address."""
    cells = _cells(text[:300])
    return len(cells) > 2 and bool(_ROW1.fullmatch(cells[0]) and _BUS.fullmatch(cells[1]))


def _is_second(text: str) -> bool:
    """Whether a line is the second row of a GPU: fan to power, memory, utilisation."""
    cells = _cells(text[:300])
    return len(cells) > 2 and bool(_STATE.fullmatch(cells[0]) and _MEMORY.fullmatch(cells[1]))


def parse(text: str, context: Context) -> list[Observation]:
    """Observations of a table or a list; of both when both are there."""
    emit = Emitter(context, NAME, REVISION)
    read(emit, cleaned(lines_of(text)))
    return emit.finish()


def read(emit: Emitter, lines: Sequence[Line]) -> None:
    """Add the facts of a table or a list to `emit`."""
    _smi_errors.errors(emit, lines)
    head = next((line for line in lines if _HEAD.search(line.text)), None)
    if head is None:
        _listed(emit, lines)
        _picked(emit, lines)
        return
    stamp = next((line.text for line in lines if line.number < head.number and local_time(line.text)), "")
    emit.taken(stamp)
    _headline(emit, head)
    known: dict[str, Subject] = {}
    for block in _blocks(lines, head.number):
        if block and _ROW1.fullmatch(_cells(block[0].text)[0]):
            _gpu(emit, block, known)
    listed = len(known) or Reading(None, Status.FAILED, "the table ends early: no row of a GPU could be read in it")
    emit.add("node.gpu.listed", emit.node, listed, head.number, f"{len(known)} GPUs in the table")
    _mig(emit, lines, known)
    _processes(emit, lines, known)


def _picked(emit: Emitter, lines: Sequence[Line]) -> None:
    """Rows without the headline. Of a second row alone nobody knows the GPU: it is counted, and not called by an index."""
    known: dict[str, Subject] = {}
    block: list[Line] = []
    nameless = 0
    for line in (*lines, Line(0, "")):
        text = line.text.strip()
        if _is_first(text) or not text.startswith("|"):
            if block:
                _gpu(emit, block, known)
            block = [line] if _is_first(text) else []
        elif block:
            block.append(line)
        elif _is_second(text):
            subject = gpu(f"{UNKNOWN_PCI}row {nameless}", emit.host)
            emit.answers(subject, _second(emit, subject, line), line.number, line.text)
            nameless += 1
    _processes(emit, lines, known)


def _headline(emit: Emitter, head: Line) -> None:
    found = _HEAD.search(head.text)
    assert found is not None
    driver = text_value(found[2])
    emit.add("node.driver.version", emit.node, driver, head.number, head.text)
    emit.add("node.driver.state", emit.node, "ok" if driver.ok else driver, head.number, head.text)
    if cuda := _CUDA.search(head.text):
        emit.add("node.cuda.version", emit.node, text_value(cuda[1]), head.number, head.text)


def _cells(text: str) -> list[str]:
    """What stands between the bars."""
    parts = text.strip().strip("|").split("|")
    return parts or [""]


def _blocks(lines: Iterable[Line], after: int) -> list[list[Line]]:
    """Runs of rows between the ruled lines, below the column headings and above the next table."""
    out: list[list[Line]] = []
    inside = False
    for line in lines:
        text = line.text.strip()
        if line.number <= after:
            continue
        if "Processes:" in text or "MIG devices:" in text or "Compute processes:" in text:
            break
        if text.startswith("|="):
            inside = True
            out.append([])
        elif text.startswith("+"):
            out.append([])
        elif inside and text.startswith("|"):
            out[-1].append(line)
    return out


def _gpu(emit: Emitter, block: Sequence[Line], known: dict[str, Subject]) -> None:
    first = block[0]
    cells = _cells(first.text)
    row = _ROW1.fullmatch(cells[0])
    assert row is not None
    bus = _BUS.fullmatch(cells[1]) if len(cells) > 1 else None
    subject = emit.gpu(bus[1]) if bus else gpu(f"index:{int(row[1])}", emit.host)
    known[str(int(row[1]))] = subject
    line, quoted = first.number, first.text
    emit.add("gpu.index", subject, int(row[1]), line, quoted)
    name = row[2].strip()
    if not name.endswith("..."):  # old tables cut the name
        emit.add("gpu.name", subject, text_value(name), line, quoted)
    if row[3] not in ("TCC", "WDDM", "MCDM"):  # Windows prints the driver model here
        emit.add("gpu.persistence_mode", subject, boolean(row[3]), line, quoted)
    if bus:
        emit.add("gpu.display.active", subject, boolean(bus[2]), line, quoted)
    seen = [_ecc(emit, subject, cells[2], first)] if len(cells) > 2 else []
    if len(block) > 1:
        seen += _second(emit, subject, block[1])
    if len(block) > 2:
        _third(emit, subject, block[2])
    lost = next((line for line in block if LOST.search(line.text)), None)
    if lost is not None:
        emit.add("gpu.nvml.reachable", subject, False, lost.number, lost.text)
    else:
        emit.answers(subject, seen, line, block[min(1, len(block) - 1)].text)


def _ecc(emit: Emitter, subject: Subject, cell: str, line: Line) -> Reading:
    """Uncorrected errors since the driver load; ``Off`` is ECC off, ``On`` stands there in MIG mode."""
    word = cell.strip()
    if word in ("Off", "On"):
        emit.add("gpu.ecc.mode", subject, word == "On", line.number, line.text)
        reason = "ECC is off" if word == "Off" else "not counted for a GPU in MIG mode"
        reading = Reading(None, Status.NOT_APPLICABLE if word == "Off" else Status.UNSUPPORTED, reason)
    else:
        reading = count(word)
    emit.add("gpu.ecc.volatile.uncorrected.total", subject, reading, line.number, line.text)
    return reading


def _second(emit: Emitter, subject: Subject, line: Line) -> list[Reading]:
    """Fan, temperature, state, power | memory | utilisation and compute mode."""
    cells = _cells(line.text)
    where = (line.number, line.text)
    words = cells[0].replace(" / ", " ").replace("/ ", " ").split()
    out: list[Reading] = []
    if len(words) == 5:
        fan, heat, state, used, limit = words
        fan_reading = percent(fan)
        emit.add("gpu.fan.speed", subject, fan_reading, *where)
        if fan_reading.status in (Status.OK, Status.FAILED):
            emit.add("gpu.fan.state", subject, "ok" if fan_reading.ok else "error", *where)
        heat = f"{heat[:-1]} C" if heat.endswith("C") and heat[:-1].lstrip("-").isdigit() else heat
        for fact, reading in (("gpu.temperature.core", celsius(heat)), ("gpu.performance_state", pstate(state)),
                              ("gpu.power.draw", watts(used)), ("gpu.power.limit", watts(limit))):  # fmt: skip
            emit.add(fact, subject, reading, *where)
            out.append(reading)
    elif words:
        bad = absent(cells[0]) or not_understood(cells[0], "fan, temperature, state and power")
        for fact in ("gpu.temperature.core", "gpu.performance_state", "gpu.power.draw"):
            emit.add(fact, subject, bad, *where)
            out.append(bad)
    if len(cells) > 1:
        used_mib, _, total_mib = cells[1].partition(" / ")
        for fact, cell in (("gpu.memory.used", used_mib), ("gpu.memory.total", total_mib or used_mib)):
            out.append(mebibytes(cell))
            emit.add(fact, subject, out[-1], *where)
    if len(cells) > 2 and (words := cells[2].split(None, 1)):
        out.append(percent(words[0]))
        emit.add("gpu.utilization.core", subject, out[-1], *where)
        if len(words) > 1:
            emit.add("gpu.compute_mode", subject, compute_mode(words[1]), *where)
    return out


def _third(emit: Emitter, subject: Subject, line: Line) -> None:
    """MIG mode; an asterisk marks a mode that waits for a reset."""
    cells = _cells(line.text)
    word = cells[-1].strip()
    if len(cells) < 3 or not word:
        return
    emit.add("gpu.mig.mode", subject, boolean(word), line.number, line.text)
    if word.endswith("*"):
        reading = boolean(word)
        pending = Reading(not reading.value) if reading.ok else reading
        emit.add("gpu.mig.mode.pending", subject, pending, line.number, line.text)


def _mig(emit: Emitter, lines: Iterable[Line], known: dict[str, Subject]) -> None:
    devices: dict[Subject, int] = {}
    for line in lines:
        found = _MIG.match(line.text.strip()) if line.text.count("|") >= 5 else None
        if not found:
            continue
        holder = known.get(str(int(found[1]))) or gpu(f"index:{int(found[1])}", emit.host)
        subject = Subject(Scope.MIG, mig_id(found[2], found[3]), holder)
        devices[holder] = devices.get(holder, 0) + 1
        for fact, reading in (("mig.index", count(found[4])), ("mig.memory.used", mebibytes(found[5])),
                              ("mig.memory.total", mebibytes(found[6])), ("mig.sm_count", count(found[7])),
                              ("mig.ecc.volatile.uncorrected.sram", count(found[8]))):  # fmt: skip
            emit.add(fact, subject, reading, line.number, line.text)
    for holder, number in devices.items():
        emit.add("gpu.mig.devices", holder, number, None, f"{number} rows in the MIG table")


def _processes(emit: Emitter, lines: Sequence[Line], known: dict[str, Subject]) -> None:
    listing = False
    for line in lines:
        text = line.text.strip()
        listing = listing or "Processes:" in text or "Compute processes:" in text
        if not listing or not text.startswith("|"):
            continue
        if "No running" in text and "processes found" in text:
            for subject in known.values():
                emit.no_processes(subject)
        elif found := _PROCESS.match(text):
            holder = known.get(str(int(found[1]))) or gpu(f"index:{int(found[1])}", emit.host)
            name, memory = _tail(found[6])
            instance = None
            if found[2] and found[2].isdigit():
                instance = Subject(Scope.MIG, mig_id(found[2], found[3] or ""), holder)
            emit.process(found[4], holder, memory, name=name, kind=found[5], instance=instance,
                         line=line.number, excerpt=text)  # fmt: skip
        elif (found := _PROCESS_NOT.match(text)) and str(int(found[1])) in known:
            reading = absent(found[2]) or Reading(None, Status.FAILED, found[2])
            emit.processes_unknown(known[str(int(found[1]))], reading)
    written = [line for line in lines if line.text.strip()]
    if listing and any(line.text.strip().startswith("+") for line in written[-3:]):
        for subject in known.values():
            emit.no_processes(subject)  # a complete list that does not name the GPU


def _tail(text: str) -> tuple[str, Reading | None]:
    """Process name and memory of the rest of a process row."""
    name, _, last = text.rstrip().rpartition(" ")
    reading = mebibytes(last)
    if reading.ok or absent(last) is not None:
        return name.strip(), reading
    return text.strip(), None


def _listed(emit: Emitter, lines: Iterable[Line]) -> None:
    """``nvidia-smi -L``."""
    holder: Subject | None = None
    names: dict[Subject, int] = {}
    counts: list[
        tuple[int, int]
    ] = []  # of each list, its last line and how many it has: one whose index falls is the next
    last = -1
    first: int | None = None
    for line in lines:
        if found := LISTED.fullmatch(line.text):
            holder = listed_gpu(emit, found, line)
            names[holder] = 0
            index = int(found[1])
            if counts and index > last:
                counts[-1] = (line.number, counts[-1][1] + 1)
            else:
                counts.append((line.number, 1))
            last = index
            first = first or line.number
        elif (found := _MIG_LISTED.fullmatch(line.text)) and holder is not None:
            subject = Subject(Scope.MIG, f"index:{int(found[2])}", holder)
            names[holder] += 1
            emit.add("mig.profile", subject, found[1], line.number, line.text)
            emit.add("mig.index", subject, int(found[2]), line.number, line.text)
            emit.add("mig.uuid", subject, found[3], line.number, line.text)
    for subject, devices in names.items():
        if devices:
            emit.add("gpu.mig.devices", subject, devices, None, f"{devices} MIG devices listed")
            emit.add("gpu.mig.mode", subject, True, None, f"{devices} MIG devices listed")
    for number, own in counts:
        emit.add("node.gpu.listed", emit.node, own, number, f"{own} GPUs listed")
    if names:
        emit.add("node.driver.state", emit.node, "ok", first, f"{len(names)} GPUs listed")


def listed_gpu(emit: Emitter, found: re.Match[str], line: Line) -> Subject:
    """The GPU of a ``GPU 0: name (UUID: ...)`` line, with its identity."""
    subject = gpu(found[3] or f"index:{int(found[1])}", emit.host)
    emit.add("gpu.index", subject, int(found[1]), line.number, line.text)
    emit.add("gpu.name", subject, text_value(found[2]), line.number, line.text)
    if found[3]:
        emit.add("gpu.uuid", subject, found[3], line.number, line.text)
    return subject


PROVIDES = (
    "node.driver.version", "node.driver.state", "node.cuda.version", "node.gpu.listed", "gpu.index", "gpu.name",
    "gpu.uuid", "gpu.persistence_mode", "gpu.display.active", "gpu.ecc.mode", "gpu.ecc.volatile.uncorrected.total",
    "gpu.fan.speed", "gpu.fan.state", "gpu.temperature.core", "gpu.performance_state", "gpu.power.draw",
    "gpu.power.limit", "gpu.memory.used", "gpu.memory.total", "gpu.utilization.core", "gpu.compute_mode",
    "gpu.mig.mode", "gpu.mig.mode.pending", "gpu.mig.devices", "gpu.nvml.reachable", "gpu.reset_required", "gpu.readings.failed", "gpu.processes", "mig.index",
    "mig.profile", "mig.uuid", "mig.memory.used", "mig.memory.total", "mig.sm_count",
    "mig.ecc.volatile.uncorrected.sram", "process.uses_gpu", "process.uses_mig", "process.gpu_memory",
    "process.name", "process.gpu_contexts", *_smi_errors.PROVIDES,
)  # fmt: skip
FORMAT = DocumentFormat(NAME, "nvidia-smi summary table or GPU list", REVISION, tuple(sorted(set(PROVIDES))), sniff,
                        parse)  # fmt: skip
