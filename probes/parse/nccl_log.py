"""NCCL and RCCL messages, and PyTorch's reports about NCCL, in the logs of distributed jobs."""

from __future__ import annotations

import re
from collections.abc import Sequence

from knowledge.identity import normalise_pci
from knowledge.lazy import lazy
from knowledge.observation import Observation, Scalar
from knowledge.record import dataclass
from knowledge.text import excerpt
from probes.base import Context, Line, LogFormat
from probes.parse import _app_nccl, _app_watchdog
from probes.parse._app_emit import Emitter, none_seen
from probes.parse._app_lines import AppLine, application_head, peel_all, rank_subject

NAME = "nccl-log"
REVISION = 7
MAX_RANKS = 4096  # relations kept

TRIGGERS = (
    r"NCCL (?:WARN|ERROR|ABORT)|NCCL (?:communicator )?[Ee]rror|NCCL communicator was aborted",
    r"nccl(?:System|Internal|Remote|UnhandledCuda)Error|ncclInvalid(?:Usage|Argument)|unhandled (?:cuda|system) error",
    r"NCCL INFO \S+:\d+ -> [1-8]|setting up NCCL communicator|Transport retry count exceeded",
    r"[NR]CCL version [0-9]|set by environment to|NET/IB ?: (?:[^N]|N[^C])|Failed to open libibverbs|NET/OFI|NET/Socket : Using|Using network|GPU Direct RDMA|cudaDev \d+",
    r"\] \[(?:send|receive)\] via NET/|\bm(?:ax|in)_nodes +: \d|\bgroup_world_size=\d|\bnnodes[=:] ?\d|SLURM_(?:JOB_NUM_|N)NODES=\d",
    r"CANCELLED AT |got signal: 15|death signal, shutting down|Node failure on |srun: error: \S+: tasks? [0-9,\-]+: |failed \(exitcode: -\d",
    *_app_watchdog.TRIGGERS,
)
_SNIFF = lazy(
    r"NCCL (?:WARN|ERROR|INFO|ABORT) |WorkNCCL\(|ProcessGroupNCCL|NCCL error|[Nn]ccl(?:System|Internal|Remote|UnhandledCuda)Error"
    r"|monitoredBarrier|didn't join collective #|joined but didn't finish collective #|setting up NCCL communicator"
)

_TORCH = lazy(
    r"NCCL (?:communicator )?[Ee]rror|nccl(?:System|Internal|Remote|UnhandledCuda)Error|ncclInvalid(?:Usage|Argument)"
    r"|setting up NCCL communicator|Transport retry count exceeded|NCCL communicator was aborted"
)
_RESULT = lazy(r"nccl(?:SystemError|InternalError|RemoteError|UnhandledCudaError|InvalidUsage|InvalidArgument)")
_WORDS = lazy("|".join(_app_nccl.RESULT_WORDS))
_BY_RESULT = {1: "cuda_failure", 2: "system_error", 3: "internal_error", 4: "invalid_argument", 5: "invalid_usage",
              6: "remote_error"}  # fmt: skip
_IN = lazy(r"NCCL [Ee]rror in: (\S{1,300}):(\d{1,7})")
_VERSION = lazy(r"\b([NR]CCL) version ([0-9][0-9A-Za-z.+_-]{0,60})")
_STORE = lazy(r"\[(\d{1,6})\] is setting up NCCL communicator and retrieving ncclUniqueId from \[(\d{1,6})\]")
_ABORTED = lazy(r"NCCL communicator was aborted on rank (\d{1,6})")
_CONTINUES = 8  # lines in which PyTorch goes on: the result, "Last error:", the message of NCCL

_ENV = lazy(r"\b((?:NCCL|RCCL)_\w{1,60}) set by environment to (\S{1,200}?)\.?$")
_NETWORK = lazy(r"Using network ([\w ./-]{1,60})")
_DEVICES = lazy(r"\[\d{1,3}\]([\w-]{1,40}:\d{1,3}/\w{1,10})")
# Channel 00/0 : 0[0] -> 8[0] [send] via NET/IB/0/GDRDMA
_VIA = lazy(r"\] via NET/(\w[\w -]{0,40})/\d{1,4}(?:\(\d{1,6}\))?(?:/Shared)?(/GDRDMA)?")
_GDR = lazy(r"GPU Direct RDMA (Enabled|Disabled)")
# ncclCommInitRank comm 0x55d0 rank 9 nRanks 16 nNodes 2 localRanks 8 localRank 1 MNNVL 0
#   min_nodes        : 2 ... group_world_size=2 (torchrun)      nnodes=2      SLURM_NNODES=2      of launchers
_NODES = lazy(r"\b(?:nNodes |min_nodes {1,12}: |group_world_size=|nnodes[=:] ?|SLURM_(?:JOB_NUM_|N)NODES=)(\d{1,6})\b")
# comm 0x5581a0 rank 8 nranks 16 cudaDev 0 nvmlDev 0 busId 1b000: launchers number the ranks of a node after its GPUs, and start anew on the next
_PLACE = lazy(r"\brank (\d{1,7}) nranks (\d{1,7}) cudaDev \d{1,3} nvmlDev (\d{1,3})\b")
_LARGEST, _BOARD = 16, 8  # GPUs of the largest node, and of the common one
# comm 0x55d0 rank 3 nranks 8 cudaDev 3 nvmlDev 3 busId 5d000 commId 0x1 - Init COMPLETE
_COMM = lazy(r"\brank (\d{1,7}) nranks (\d{1,7}) cudaDev (\d{1,3})(?: nvmlDev \d{1,3})? busId ([0-9a-f]{1,12})\b")


@dataclass(slots=True)
class _Found:
    """One complaint of one process about one peer; repeats are counted."""

    line: AppLine
    rank: int | None
    fields: dict[str, Scalar]
    code: int | None = None
    count: int = 1


def sniff(head: str) -> int:
    """70 when `head` holds lines of NCCL or of PyTorch's NCCL backend."""
    return 70 if _SNIFF.search(head) else application_head(head)


def parse(lines: Sequence[Line], context: Context) -> list[Observation]:
    """Errors, timeouts and disagreements, and what NCCL says about version, network and ranks."""
    emit = Emitter(NAME, REVISION, context)
    app = peel_all(lines, context)
    ranks = _ranks(app)
    ends = [line for line in app if _ENDED.search(line.text)]
    died = next((line for line in app if _FAILED.search(line.text)), None)
    died = died if died is not None and _BY_SIGNAL.search(died.text) else None
    for found in _errors(app, ranks):
        gone = died is not None and abs(found.line.number - died.number) <= _NEAR
        if found.fields.get("kind") in _PARTED and (gone or any(_follows(found.line, end) for end in ends)):
            found.fields["kind"] = "after_end"
        _emit(emit, found)
    _app_watchdog.report(emit, app)
    _facts(emit, app)
    _relations(emit, app)
    none_seen(emit, ("nccl_error", "nccl_watchdog_timeout", "nccl_desync"), app)
    return emit.out


# slurmstepd: error: *** STEP 7.0 ON n1 CANCELLED AT ... ***     SignalException: Process 9 got signal: 15     Received 15 death signal, shutting down workers
_ENDED = lazy(
    r"CANCELLED AT |got signal: 15\b|Received .{1,40} death signal, shutting down|srun: error: Node failure on "
)
# srun: error: n4: task 3: Killed     failed (exitcode: -11) local_rank: 3 (pid: 7): of the first that a launcher tells, what ended it was no other rank
_FAILED = lazy(r"srun: error: \S{1,80}: tasks? [0-9,\-]{1,80}: |failed \(exitcode: -?\d")
_BY_SIGNAL = lazy(
    r": (?:Killed|Segmentation fault|Bus error|Illegal instruction|Out [Oo]f [Mm]emory)\b|exitcode: -(?:4|7|8|9|11)\)"
)
# What a rank says when the others are gone; an adapter or a cable tells more.
_PARTED = frozenset({"aborted", "connection_closed", "connection_reset", "connection_aborted", "socket_refused", "remote_error", "other"})  # fmt: skip
_SOON, _NEAR = 300 * 10**9, 400  # ns, lines: the next run may write into the same log


def _follows(line: AppLine, end: AppLine) -> bool:
    """Whether a line is of a job that was just ended from outside."""
    timed = line.at is not None and end.at is not None and line.clock is end.clock
    soon = line.at - end.at <= _SOON if timed and line.at is not None and end.at is not None else True
    return end.number < line.number <= end.number + _NEAR and soon


def _ranks(app: Sequence[AppLine]) -> dict[tuple[str, str], int]:
    """Rank of each (host, pid) in the largest communicator that it joined."""
    best: dict[tuple[str, str], tuple[int, int]] = {}
    for line in app:
        said, comm = _app_nccl.spoken(line.text), _COMM.search(line.text)
        if said and comm and said[2]:
            key, size = (said[1], said[2]), int(comm[2])
            if size > best.get(key, (0, 0))[0]:
                best[key] = (size, int(comm[1]))
    return {key: rank for key, (_, rank) in best.items()}


def _errors(app: Sequence[AppLine], ranks: dict[tuple[str, str], int]) -> list[_Found]:
    found: dict[tuple[Scalar, ...], _Found] = {}
    open_: dict[str, _Found] = {}  # by process: the complaint that unwinding lines belong to
    spoken: dict[str, _Found] = {}  # by message of NCCL: PyTorch repeats it
    taken: set[int] = set()
    for index, line in enumerate(app):
        said = _app_nccl.spoken(line.text)
        if said and said[7] == "WARN" and _app_nccl.advises(said[8]):
            continue
        if said and said[7] in ("WARN", "ERROR", "ABORT"):
            known = _add(found, _of_nccl(line, said, ranks))
            open_[f"{said[1]}:{said[2]}"] = spoken[said[8].strip()] = known
        elif said:
            code, complaint = _app_nccl.result_of(said[8]), open_.get(f"{said[1]}:{said[2]}")
            if code and complaint and complaint.code is None:
                complaint.code = code
        elif line.number not in taken and _TORCH.search(line.text) and "Watchdog caught" not in line.text:
            item, parts = _of_torch(app, index, taken)
            if repeated := next((spoken[part] for part in parts if part in spoken), None):
                _enrich(repeated, item)
            else:
                _add(found, item)
    told = {item.fields.get("pid") for item in found.values() if item.fields.get("wc_status") is not None}
    return [item for item in found.values() if not _is_companion(item, told)]


def _add(found: dict[tuple[Scalar, ...], _Found], item: _Found) -> _Found:
    get = item.fields.get
    kind = get("kind")
    what = get("message") if kind == "other" else get("cuda_kind")
    key = (get("pid") or item.line.label, kind, get("peer"), get("wc_status"), what)
    known = found.setdefault(key, item)
    if known is not item:
        known.count += item.count
        known.code = known.code or item.code
    return known


def _enrich(known: _Found, item: _Found) -> None:
    """What PyTorch adds to a message of NCCL that it repeats: the result, the version, the rank."""
    known.code = known.code or item.code
    known.rank = item.rank if known.rank is None else known.rank
    known.fields.setdefault("version", item.fields.get("version"))


def _of_nccl(line: AppLine, said: re.Match[str], ranks: dict[tuple[str, str], int]) -> _Found:
    fields = {**_app_nccl.origin(line, said), **_app_nccl.details(said[8])}
    if fields["kind"] == "cuda_failure" and str(fields["file"]).endswith("nvls.cc"):
        fields["kind"] = "nvls"  # the words are general; the place is not
    rank = line.rank if line.rank is not None else ranks.get((said[1] or "", said[2] or ""))
    return _Found(line, rank, fields, _app_nccl.return_code(said[8]), line.times)


def _of_torch(app: Sequence[AppLine], index: int, taken: set[int]) -> tuple[_Found, list[str]]:
    """One report of PyTorch: the line and the lines in which it goes on; the latter also alone."""
    line = app[index]
    spoken = [line.text]
    for after in app[index + 1 : index + 1 + _CONTINUES]:
        if after.label != line.label or not after.text.strip() or _app_nccl.spoken(after.text):
            break
        if len(spoken) > 1 and spoken[-1].startswith("Last error"):
            spoken.append(after.text)
            taken.add(after.number)
            break
        if not (_RESULT.search(after.text) or after.text.startswith("Last error")):
            break
        spoken.append(after.text)
        taken.add(after.number)
    text = "\n".join(spoken)
    code = _code(text)
    last = spoken[-1] if len(spoken) > 1 and spoken[-2].startswith("Last error") else line.text
    fields = _app_nccl.details(last)
    if fields["kind"] in ("other", "invalid_usage", "plugin") and code:
        fields["kind"] = _BY_RESULT[code]
    version, place = _VERSION.search(text), _IN.search(text)
    fields["version"] = version[2] if version else None
    if place:
        fields |= {"file": place[1], "line_in_source": int(place[2])}
    rank = line.rank
    if store := _STORE.search(text):
        rank = rank if rank is not None else int(store[1])
        fields |= {"kind": "bootstrap_store", "peer_rank": int(store[2])}
    elif aborted := _ABORTED.search(text):
        rank = rank if rank is not None else int(aborted[1])
        fields["kind"] = "aborted"
    fields["message"] = excerpt(text)
    return _Found(line, rank, fields, code, line.times), [part.strip() for part in spoken[1:]]


def _code(text: str) -> int | None:
    if name := _RESULT.search(text):
        return _app_nccl.RESULT_CODES.get(name[0])
    if words := _WORDS.search(text):
        return _app_nccl.RESULT_WORDS[words[0]]
    return None


def _is_companion(item: _Found, told: set[Scalar]) -> bool:
    """True for "Got CQE with error", which precedes the line that tells the status."""
    silent = item.fields.get("kind") == "ib_completion" and item.fields.get("wc_status") is None
    return silent and item.fields.get("pid") in told


def _emit(emit: Emitter, found: _Found) -> None:
    line = found.line
    result = _app_nccl.RESULTS.get(found.code) if found.code else None
    fields = {
        **found.fields,
        "result": result,
        "rank": found.rank,
        "label": line.label or None,
        "count": found.count,
    }
    subject = rank_subject(found.rank, emit.document)
    emit.event("nccl_error", subject, fields, line.number, line.raw, code=found.code, at=line.at, clock=line.clock)


def _is_elsewhere(text: str) -> bool:
    """Whether some rank of this communicator must be on another node than the first."""
    if not (found := _PLACE.search(text)):
        return False
    rank, ranks, device = (int(number) for number in found.groups())
    return ranks > _LARGEST or (rank >= _BOARD and device == rank % _BOARD)


def _facts(emit: Emitter, app: Sequence[AppLine]) -> None:
    """Version, settings and network, each once for the log."""
    sets: dict[str, dict[str, AppLine]] = {}

    def keep(name: str, value: str, line: AppLine) -> None:
        sets.setdefault(name, {}).setdefault(value, line)

    for line in app:
        text = line.text
        if version := _VERSION.search(text):
            keep("job.nccl.version", version[2], line)
        if env := _ENV.search(text):
            keep("job.nccl.env", f"{env[1]}={env[2]}", line)
        if network := _NETWORK.search(text):
            keep("job.nccl.network", network[1].strip(), line)
        if "NET/IB : Using" in text:
            for device in _DEVICES.findall(text):
                keep("job.nccl.ib.devices", device, line)
        if (said := _app_nccl.spoken(text)) and said[1]:
            keep("hosts", said[1], line)
        if nodes := _NODES.search(text):
            keep("nodes", nodes[1], line)
        if via := _VIA.search(text):
            keep("between", text, line)
            keep("job.nccl.network", via[1], line)
            if via[2]:
                keep("job.nccl.gdr", "enabled", line)
        if _is_elsewhere(text):
            keep("beyond", text, line)
        if re.search(r"NET/IB ?: No device found|Failed to open libibverbs", text):
            keep("job.nccl.ib.found", "no", line)
        if direct := _GDR.search(text):
            keep("job.nccl.gdr", direct[1].lower(), line)
    hosts, counted = sets.pop("hosts", {}), sets.pop("nodes", {})
    if between := sets.pop("between", {}):  # the network is for ranks on other nodes
        counted.setdefault("2", next(iter(between.values())))
    if (beyond := sets.pop("beyond", {})) and not counted:
        counted["2"] = next(iter(beyond.values()))
    told = max((int(count) for count in counted), default=0)
    if told or len(hosts) > 1:  # the lines of one node alone do not tell that there is no other
        line = next(iter((counted if told >= len(hosts) else hosts).values()))
        emit.fact("job.nccl.nodes", emit.document, max(told, len(hosts)), line.number, line.raw)
    for name, values in sets.items():
        line = next(iter(values.values()))
        if name == "job.nccl.ib.found":
            emit.fact(name, emit.document, "job.nccl.ib.devices" in sets, line.number, line.raw)
        else:
            emit.fact(name, emit.document, tuple(sorted(values)), line.number, line.raw)
    if world := _app_watchdog.world_size(app):
        emit.fact("job.ranks", emit.document, world[0], world[1].number, world[1].raw)


def _relations(emit: Emitter, app: Sequence[AppLine]) -> None:
    """Which process and which GPU each rank is, from the lines of the largest communicator."""
    comms = [(said, comm, line) for line in app
             if (said := _app_nccl.spoken(line.text)) and (comm := _COMM.search(line.text))]  # fmt: skip
    size = max((int(comm[2]) for _, comm, _ in comms), default=0)
    seen: set[str] = set()
    for said, comm, line in comms:
        if int(comm[2]) != size or comm[1] in seen or len(seen) >= MAX_RANKS:
            continue
        seen.add(comm[1])
        rank = rank_subject(int(comm[1]), emit.document)
        facts: list[tuple[str, str]] = [("rank.uses_gpu", f"gpu:{_pci(comm[4])}")]
        if said[1]:
            facts += [("rank.on_node", f"node:{said[1]}"), ("rank.is_process", f"process:{said[2]}")]
        for name, value in facts:
            emit.fact(name, rank, value, line.number, line.raw, at=line.at, clock=line.clock)


def _pci(text: str) -> str:
    """NCCL prints domain, bus, device and function as one hexadecimal number: ``5d000`` is ``0000:5d:00.0``."""
    number = int(text, 16)
    return normalise_pci(f"{number >> 20:04x}:{number >> 12 & 0xFF:02x}:{number >> 4 & 0xFF:02x}.{number & 0xF:x}")


FORMAT = LogFormat(
    name=NAME,
    title="NCCL and torch.distributed logs",
    revision=REVISION,
    provides=(
        "nccl_error",
        "nccl_watchdog_timeout",
        "nccl_desync",
        "job.nccl.timeout.ranks",
        "job.nccl.timeout.same_seq",
        "job.nccl.timeout.ops",
        "job.nccl.timeout.min_seq_rank",
        "job.nccl.timeout.missing_ranks",
        "job.nccl.timeout.first_rank",
        "job.nccl.flight_recorder",
        "job.nccl.version",
        "job.nccl.env",
        "job.nccl.network",
        "job.nccl.ib.devices",
        "job.nccl.ib.found",
        "job.nccl.nodes",
        "job.nccl.gdr",
        "job.ranks",
        "rank.uses_gpu",
        "rank.on_node",
        "rank.is_process",
    ),
    sniff=sniff,
    triggers=TRIGGERS,
    parse=parse,
    before=3,
    after=12,
    counts=("nccl_error", "nccl_watchdog_timeout", "nccl_desync"),
)
