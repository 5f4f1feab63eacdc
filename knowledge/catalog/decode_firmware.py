"""Bodies of firmware and device XIDs: 61, 62, 79, 119, 120, 143, 154, 175."""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import StrEnum

from knowledge.catalog.decode_common import Fields, find_hex, find_int, hex_text, present
from knowledge.lazy import lazy

# 223b6a66 00002100 00000000 20662342 20662ba6 20664272 2065f7ca 2063f48c
# 203c(3090) 00000000 00000000
_WORDS = lazy(r"\s*([0-9a-fA-F]{4,8}(?:\([0-9a-fA-F]{1,8}\))?(?: [0-9a-fA-F]{8}){1,16})\b")


def power_unit(text: str) -> Fields:
    """XID 61 and 62: the words of the power management unit. NVIDIA does not publish their meaning."""
    words = _WORDS.match(text)
    return present(words=words[1].lower() if words else None)


# GPU has fallen off the bus.
_OFF_BUS = lazy(r"fallen off the bus", re.IGNORECASE)


def off_bus(text: str) -> Fields:
    """XID 79: whether the line says so in words."""
    return present(bus_lost=True if _OFF_BUS.search(text) else None)


# Timeout waiting for RPC from GSP! Expected function 103 (GSP_RM_ALLOC) (0x80 0x38).
# Timeout after 6s of waiting for RPC response from GPU4 GSP! Expected function 76 (GSP_RM_CONTROL) (0x20801813 0x4c).
# Timeout after 6s of waiting for RPC response from GPU0 GSP! Expected function 76 (GSP_RM_CONTROL) sequence 1321 (0x0 0x0).
_SECONDS = lazy(r"\bTimeout after (\d{1,5})s\b")
_RPC_GPU = lazy(r"\bfrom GPU(\d{1,3}) GSP\b")
_FUNCTION = lazy(r"\bExpected function (\d{1,6})\s")
_FUNCTION_NAME = lazy(r"\bExpected function \d{1,6} \((\w{1,60})\)")
_SEQUENCE = lazy(r"\bsequence (\d{1,12})(?=[\s.])")
_PARAMETERS = lazy(r"\(0x([0-9a-fA-F]{1,16}) 0x([0-9a-fA-F]{1,16})\)")


def rpc(text: str) -> Fields:
    """XID 119: which GPU's firmware, after how many seconds, in which call."""
    name, parameters = _FUNCTION_NAME.search(text), _PARAMETERS.search(text)
    return present(
        seconds=find_int(_SECONDS, text), gpu_index=find_int(_RPC_GPU, text), function=find_int(_FUNCTION, text),
        function_name=name[1] if name else None, sequence=find_int(_SEQUENCE, text),
        parameters=f"{hex_text(parameters[1])} {hex_text(parameters[2])}" if parameters else None,
    )  # fmt: skip


# GSP task exception: load access page fault (cause:0xd) @ pc:0x13636b2, partition:2#0, task:3, gfid: 0
# GSP kernel exception: store access page fault (cause:0xf) @ pc:0xffffffff93003d42, partition:4#0
# GSP task watchdog timeout @ pc:0x1b66396, partition:4#0, task:1
# Poison error in GSP.
_GSP = lazy(r"\bGSP (task|kernel) (?:exception: ([a-z][a-z /-]{1,60}?)(?= \(| @|,|$)|(watchdog timeout))")
_POISON = lazy(r"\bPoison error in GSP\b")
_CAUSE = lazy(r"\bcause:0x([0-9a-fA-F]{1,16})\)")
_PC = lazy(r"\bpc:0x([0-9a-fA-F]{1,16})(?=[,\s]|$)")
_GSP_PARTITION = lazy(r"\bpartition:(\d{1,4}#\d{1,4})(?=[,\s]|$)")
_TASK = lazy(r"\btask:\s?(\d{1,4})(?=[,\s]|$)")
_GFID = lazy(r"\bgfid:\s?(\d{1,6})(?=[,\s]|$)")


def gsp(text: str) -> Fields:
    """XID 120: what crashed in the GPU's own processor, why, and at which program counter."""
    crash, partition = _GSP.search(text), _GSP_PARTITION.search(text)
    return present(
        gsp_context=crash[1] if crash else None,
        exception=(crash[2] or crash[3]) if crash else "poison" if _POISON.search(text) else None,
        cause=find_hex(_CAUSE, text), pc=find_hex(_PC, text), gsp_partition=partition[1] if partition else None,
        task=find_int(_TASK, text), gfid=find_int(_GFID, text),
    )  # fmt: skip


# Error status 0x65 while polling for FSP boot complete, 0xffffffff, 0x0, 0x0, 0x0, 0x0
# FSP fuse error check has failed. Status = 0x1.
_INIT_STATUS = lazy(r"\b(?:Error status|Status =) 0x([0-9a-fA-F]{1,8})(?=[\s.,]|$)")


def init_error(text: str) -> Fields:
    """XID 143: the stage of the start that failed and its status."""
    stage = "fsp_boot" if "FSP boot complete" in text else "fsp_fuse" if "FSP fuse" in text else None
    return present(init_stage=stage, init_status=find_hex(_INIT_STATUS, text))


# GPU memory subsystem timeout (type 2) detected
_TIMEOUT_TYPE = lazy(r"\btimeout \(type (\d{1,6})\)")


def memory_timeout(text: str) -> Fields:
    """XID 175: the kind of operation that timed out."""
    return present(timeout_type=find_int(_TIMEOUT_TYPE, text))


class Recovery(StrEnum):
    """The driver's recovery actions, in the order of their numbers (open kernel modules; NVML 13 for 6 and 7)."""

    NONE = "none"
    GPU_RESET = "gpu_reset"
    NODE_REBOOT = "node_reboot"
    DRAIN_P2P = "drain_p2p"
    DRAIN_AND_RESET = "drain_and_reset"
    RECOVER_IMEX = "recover_imex"
    BUS_RESET = "bus_reset"
    SYSTEM_REBOOT = "system_reboot"
    UNKNOWN = "unknown"  # a number that a newer driver brought: an action is due, and only the line says which


# DRAIN_P2P: stop the peer-to-peer work and ask again; a reset only when the state stays. RECOVER_IMEX: the domain
# comes back with its service. Neither is one of NVIDIA's words, so a person is asked; `rules.resolve` has the steps.
BUCKETS: Mapping[Recovery, str] = {
    Recovery.NONE: "IGNORE",
    Recovery.GPU_RESET: "RESET_GPU",
    Recovery.NODE_REBOOT: "RESTART_BM",
    Recovery.DRAIN_P2P: "ASK_PLATFORM",
    Recovery.DRAIN_AND_RESET: "DRAIN_AND_RESET",
    Recovery.RECOVER_IMEX: "ASK_PLATFORM",
    Recovery.BUS_RESET: "RESTART_BM",
    Recovery.SYSTEM_REBOOT: "RESTART_BM",
    Recovery.UNKNOWN: "",
}

# GPU recovery action changed from 0x0 (None) to 0x1 (GPU Reset Required)
# GPU recovery action changed from 0x0 (None) to 0x2 (OS Reboot)
_FROM = lazy(r"\bfrom 0x([0-9a-fA-F]{1,8})\b")
_TO = lazy(r"\bto\s{1,40}0x([0-9a-fA-F]{1,8})\b")
_TO_WORDS = lazy(r"\bto\s{1,40}0x[0-9a-fA-F]{1,8} \(([^()]{1,60})\)")


def recovery_action(number: int | None) -> Recovery | None:
    """The action with this number, `UNKNOWN` for one that the list does not hold; None when there is no number."""
    if number is None:
        return None
    actions = list(Recovery)[:-1]
    return actions[number] if 0 <= number < len(actions) else Recovery.UNKNOWN


def recovery(text: str) -> Fields:
    """XID 154: the old and the new action. The number counts: drivers differ in the words."""
    before, after = find_int(_FROM, text, 16), find_int(_TO, text, 16)
    words, action = _TO_WORDS.search(text), recovery_action(after)
    return present(
        recovery_from=before, recovery_to=after, recovery_text=words[1] if words else None,
        recovery=str(action) if action else None,
    )  # fmt: skip
