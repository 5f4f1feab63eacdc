"""What NCCL's own lines say: the kind of trouble, the peer, the InfiniBand completion status."""

from __future__ import annotations

import ipaddress
import re

from knowledge.lazy import lazy
from knowledge.observation import Scalar
from knowledge.text import excerpt
from probes.parse._app_cuda import classify
from probes.parse._app_lines import AppLine

# node5:240:240 [6] misc/socket.cc:533 NCCL WARN socketPollConnect: Connect to 10.0.0.4<56849> returned 113(No route to host)
# node5:240:240 [6] NCCL INFO misc/socket.cc:570 -> 2
_LINE = lazy(
    r"(?:([\w.-]{1,100}):(\d{1,9}):(\d{1,9}) )?(?:\[(\d{1,3})\] )?(?:(\S{1,200}):(\d{1,6}) )?NCCL (WARN|ERROR|ABORT|INFO|VERSION) ?(.*)"
)
_RESULT_LINE = lazy(r"\S{1,200}:\d{1,6} -> (\d{1,2})\b")

# ncclResult_t of nccl.h
RESULTS = {1: "ncclUnhandledCudaError", 2: "ncclSystemError", 3: "ncclInternalError", 4: "ncclInvalidArgument",
           5: "ncclInvalidUsage", 6: "ncclRemoteError", 7: "ncclInProgress"}  # fmt: skip
RESULT_CODES = {name: code for code, name in RESULTS.items()}
# how PyTorch words them before the colon: "unhandled system error, NCCL version 2.7.8"
RESULT_WORDS = {"unhandled cuda error": 1, "unhandled system error": 2, "internal error": 3, "invalid argument": 4,
                "invalid usage": 5, "remote process exited or there was a network error": 6}  # fmt: skip

# ibv_wc_status of libibverbs
WC_STATUS = ("SUCCESS", "LOC_LEN_ERR", "LOC_QP_OP_ERR", "LOC_EEC_OP_ERR", "LOC_PROT_ERR", "WR_FLUSH_ERR", "MW_BIND_ERR",
             "BAD_RESP_ERR", "LOC_ACCESS_ERR", "REM_INV_REQ_ERR", "REM_ACCESS_ERR", "REM_OP_ERR", "RETRY_EXC_ERR",
             "RNR_RETRY_EXC_ERR", "LOC_RDD_VIOL_ERR", "REM_INV_RD_REQ_ERR", "REM_ABORT_ERR", "INV_EECN_ERR",
             "INV_EEC_STATE_ERR", "FATAL_ERR", "RESP_TIMEOUT_ERR", "GENERAL_ERR")  # fmt: skip

# errno on Linux and the words of strerror
_ERRNO = {"no such file or directory": 2, "cannot allocate memory": 12, "permission denied": 13, "invalid argument": 22,
          "too many open files": 24, "no space left on device": 28, "broken pipe": 32, "protocol not supported": 93,
          "address already in use": 98, "cannot assign requested address": 99, "network is down": 100,
          "network is unreachable": 101, "software caused connection abort": 103, "connection reset by peer": 104,
          "transport endpoint is not connected": 107, "connection timed out": 110, "connection refused": 111,
          "host is down": 112, "no route to host": 113}  # fmt: skip
_BY_ERRNO = {24: "too_many_files", 28: "shm_no_space", 32: "connection_reset", 98: "address_in_use",
             99: "address_not_available", 100: "network_unreachable", 101: "network_unreachable",
             103: "connection_aborted", 104: "connection_reset", 110: "connection_timeout", 111: "socket_refused",
             112: "no_route", 113: "no_route"}  # fmt: skip

# kind and the words that tell it, the more exact first
_KINDS: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("ib_completion", lazy(r"Got completion from peer|Got CQE with error|Got completion with error|Transport retry count exceeded")),
    ("ib_access_violation", lazy(r"access violation|invalid request local work queue")),
    ("ib_async_event", lazy(r"[Aa]sync(?:hronous)?(?: \w{1,20})? event|unknown event type")),
    ("ib_verbs", lazy(r"Call to (?:ibv_|mlx5dv_)|wrap_ibv_")),
    ("shm_not_shared", lazy(r"(?:shared memory|\bshm\b|/dev/shm/)[^\n]{0,200}No such file or directory")),
    ("shm_no_space", lazy(r"No space left on device|shared memory segment|failed to extend /dev/shm|posix_fallocate failed|/dev/shm")),
    ("duplicate_gpu", lazy(r"Duplicate GPU detected")),
    ("version_mismatch", lazy(r"Mismatched NCCL version|version mismatch", re.IGNORECASE)),
    ("rank_count_mismatch", lazy(r"mismatch in rank count|has already checked in")),
    ("nvls", lazy(r"NVLS|NVLink SHARP|Multicast|multicast|cuMem(?:Import|Export|Map)")),
    ("cuda_failure", lazy(r"C(?:uda|UDA) (?:failure|error)")),
    ("nvml", lazy(r"\bnvml[A-Z]\w{2,60}")),
    ("no_interface", lazy(r"no (?:socket )?interface found|No interface found|No IP interface found|no network interface", re.IGNORECASE)),
    ("no_ib_device", lazy(r"NET/IB ?: (?:No device found|Unable to open|No usable)|Failed to open libibverbs")),
    ("ofi", lazy(r"NET/OFI|[Ll]ibfabric")),
    ("bootstrap_timeout", lazy(r"[Bb]ootstrap.{0,200}(?:timed? ?out|[Tt]imeout)|ncclUniqueId.{0,300}timeout")),
    ("message_truncated", lazy(r"Message truncated")),
    ("connection_closed", lazy(r"[Cc]onnection closed by remote peer")),
    ("connection_timeout", lazy(r"exceeded retries|timed? ?out|[Tt]imeout")),
    ("p2p", lazy(r"peer access|\bP2P\b|CUDA IPC|cudaIpc")),
    ("proxy", lazy(r"\[(?:Proxy Service|Service thread|Proxy Progress)|[Pp]roxy (?:[Cc]all|rank)|Error encountered progressing")),
    ("plugin", lazy(r"NET/Plugin|PLUGIN|[Pp]lugin")),
    ("iommu_acs", lazy(r"iommu|\bACS\b", re.IGNORECASE)),
    ("invalid_usage", lazy(r"\b[Ii]nvalid\b|mismatch")),
)  # fmt: skip

_EXACT = next(i for i, (kind, _) in enumerate(_KINDS) if kind == "no_ib_device") + 1  # these go before an error number

# Warnings after which NCCL works on: advice on the node's settings, news of a port that still works
_ADVICE = lazy(
    r"[Aa]sync event ?: (?:GID table change|client reregistration|port active|LID change|P_Key change|SM change|path migrated)|"
    r"[Nn]on-fatal async event|Missing \"|can lead to (?:variability|system)|could impact performance|"
    r"Could not find real path|set by environment to|nvmlDeviceSetCpuAffinity|is deprecated"
)
_PEER = lazy(r"(?:\bto|\bfrom|\bpeer|\bpeer:) ([\w.:%\[\]-]{1,100})<(\d{1,5})>")
_NUMBERED = lazy(r"(?:\breturned |\b[Ee]rrno:? )(\d{1,3})\b")
_WC = lazy(r"with (?:error|status) ?=? ?(?:IBV_WC_(\w{3,30})\()?(\d{1,3})")
_WC_NAMED = lazy(r"IBV_WC_(\w{3,30})\((\d{1,3})\)")
_OPCODE = lazy(r"opcode[= ]+(?:IBV_WC_(\w{1,40})\()?(-?\d{1,6})")
_VENDOR = lazy(r"vendor[ _]err[= ]+(\d{1,6})|\bvend (0x[0-9a-fA-F]{1,6})")
_LOCAL_GID = lazy(r"localGid ([0-9a-fA-F:.]{2,50})")
_REMOTE_GID = lazy(r"remoteGids? ?([0-9a-fA-F:.]{2,50})")
_HCA = lazy(
    r"\bhca (\w{1,40})|\bon dev (\w{1,40})|exceeded on (\w{1,40})[:/]|NET/IB ?: (mlx5_\w{1,20}|bnxt_\w{1,20}|irdma\w{1,10}):\d"
)
_DIRECTION = lazy(r"\((Send|Recv)\)|\((send|recv)\)")
_QP = lazy(r"qp_num=(\d{1,9})")
_VERBS = lazy(r"Call to (ibv_\w{1,40}|mlx5dv_\w{1,40})")
_SAYS = lazy(r"failed with error ([A-Za-z ]{3,60}?)(?: errno (\d{1,3}))?(?:,|$)")
_DUPLICATE = lazy(r"rank (\d{1,7}) and rank (\d{1,7}) both on CUDA device (\w{1,20})")
_FAILURE = lazy(r"C(?:uda|UDA) (?:failure|error)[: ]{0,3}(\d{1,4})? ?['\"]?(.{0,120}?)['\"]?$")
_PEER_RANK = lazy(r"(?:from|to|with|Call to) (?:local |remote )?rank (\d{1,7})|from \[(\d{1,7})\]")
_RETCODE = lazy(r"(?:res[= ]|retcode |-> )(\d{1,2})\b")
_SHM_FILE = lazy(r"(/dev/shm/[\w.-]{1,100})")
_SIZE = lazy(r"\(?size (\d{1,18})\)?|to (\d{1,18}) bytes")


def spoken(text: str) -> re.Match[str] | None:
    """A line of NCCL: host, pid, thread, device, file, line, level, message."""
    return _LINE.search(text) if "NCCL " in text else None


def advises(text: str) -> bool:
    """True for a warning after which NCCL goes on as before."""
    return _ADVICE.search(text) is not None


def result_of(text: str) -> int | None:
    """The NCCL result that an unwinding line (``file.cc:570 -> 2``) carries."""
    found = _RESULT_LINE.match(text)
    code = int(found[1]) if found else 0
    return code if code in RESULTS else None


def kind_of(text: str) -> str:
    """The kind of trouble that a message of NCCL tells; ``other`` when it is not known."""
    for kind, words in _KINDS[:_EXACT]:
        if words.search(text):
            return kind
    number = errno_of(text)
    if number is not None and number in _BY_ERRNO:
        return _BY_ERRNO[number]
    return next((kind for kind, words in _KINDS[_EXACT:] if words.search(text)), "other")


def errno_of(text: str) -> int | None:
    """The error number of the system that `text` gives as a number or in strerror's words."""
    lowered = text.lower()
    # "returned 113(No route to host) errno 115(Operation now in progress)": the first is what failed
    words = [(lowered.find(phrase), number) for phrase, number in _ERRNO.items() if phrase in lowered]
    if words:
        return min(words)[1]
    found = _NUMBERED.search(text)
    return int(found[1]) if found and "Got completion" not in text else None


def details(text: str) -> dict[str, Scalar]:
    """All that one message says, under the field names of `nccl_error`."""
    kind = kind_of(text)
    peer = _PEER.search(text)
    hca = _HCA.search(text)
    rank = _PEER_RANK.search(text)
    fields: dict[str, Scalar] = {
        "kind": kind,
        "peer": peer[1] if peer else None,
        "peer_port": int(peer[2]) if peer else None,
        "peer_rank": next((int(r) for r in rank.groups() if r), None) if rank else None,
        "hca": next((name for name in hca.groups() if name), None) if hca else None,
        "message": excerpt(text),
    }
    if kind == "ib_completion":
        fields |= _completion(text)
    elif kind in ("cuda_failure", "nvls"):
        fields |= _cuda(text)
    elif kind == "duplicate_gpu" and (pair := _DUPLICATE.search(text)):
        fields |= {"ranks": f"{pair[1]},{pair[2]}", "cuda_device": pair[3]}
    elif kind in ("shm_no_space", "shm_not_shared"):
        name, size = _SHM_FILE.search(text), _SIZE.search(text)
        fields |= {"shm_file": name[1] if name else None, "size": int(size[1] or size[2]) if size else None}
        fields["errno"] = errno_of(text)
    else:
        fields["errno"] = errno_of(text)
    if verbs := _VERBS.search(text):
        fields["api"] = verbs[1]
    return fields


def _completion(text: str) -> dict[str, Scalar]:
    status = _WC.search(text) or _WC_NAMED.search(text)
    if status is None and "retry count exceeded" in text:
        number: int | None = 12
    else:
        number = int(status[2]) if status else None
    opcode, vendor, direction = _OPCODE.search(text), _VENDOR.search(text), _DIRECTION.search(text)
    local, remote = _LOCAL_GID.search(text), _REMOTE_GID.search(text)
    qp = _QP.search(text)
    name = WC_STATUS[number] if number is not None and number < len(WC_STATUS) else None
    return {
        "wc_status": number,
        "wc_name": name or (status[1] if status else None),
        "opcode": int(opcode[2]) if opcode else None,
        "opcode_name": opcode[1] if opcode else None,
        "vendor_err": int(vendor[1] or vendor[2], 0 if vendor[2] else 10) if vendor else None,
        "direction": (direction[1] or direction[2]).lower() if direction else None,
        "qp": int(qp[1]) if qp else None,
        "local_gid": local[1] if local else None,
        "remote_gid": remote[1] if remote else None,
        "same_24": _same_24(local[1], remote[1]) if local and remote else None,
    }


def _same_24(one: str, other: str) -> bool | None:
    """Whether two IPv4 GIDs agree in their first 24 bits; None when they are not both IPv4."""
    try:
        first, second = (ipaddress.IPv6Address(gid).ipv4_mapped for gid in (one, other))
    except ValueError:
        return None
    return None if first is None or second is None else int(first) >> 8 == int(second) >> 8


def _cuda(text: str) -> dict[str, Scalar]:
    found = _FAILURE.search(text)
    reading = classify(f"CUDA error: {found[2]}") if found and found[2] else None
    if reading is None or reading.kind == "other":
        reading = classify(text) or reading
    code = int(found[1]) if found and found[1] else (reading.code if reading else None)
    return {"cuda_kind": reading.kind if reading else None, "cuda_code": code}


def origin(line: AppLine, found: re.Match[str]) -> dict[str, Scalar]:
    """Which process wrote a line of NCCL, and from where in NCCL's source."""
    return {
        "host": found[1] or line.host or None,
        "pid": int(found[2]) if found[2] else None,
        "cuda_device": found[4],
        "file": found[5],
        "line_in_source": int(found[6]) if found[6] else None,
    }


def return_code(text: str) -> int | None:
    """The NCCL result that a message itself gives (``retcode 3``, ``res=3``)."""
    found = _RETCODE.search(text)
    return int(found[1]) if found and int(found[1]) in RESULTS else None
