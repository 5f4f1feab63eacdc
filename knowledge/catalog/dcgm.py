"""DCGM's fields and error codes, the blank values it prints, and the names that changed between versions.

Names and numbers are NVIDIA's (DCGM's headers, dcgm-exporter's counter files); meanings and traps are ours.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from enum import StrEnum
from functools import cache
from typing import Any

from knowledge.catalog.cuda import Disagreement
from knowledge.language import NO_TEXT, Text
from knowledge.lazy import lazy
from knowledge.observation import Status
from knowledge.record import dataclass


class FieldKind(StrEnum):
    """How the values of a field behave."""

    GAUGE = "gauge"
    COUNTER = "counter"
    LABEL = "label"  # text or a constant: exporters attach it to other series


@dataclass(frozen=True, slots=True)
class Alias:
    """Another name of the same field, and the versions that print it."""

    name: str
    versions: str


@dataclass(frozen=True, slots=True)
class DcgmField:
    """One field of DCGM, or one series that dcgm-exporter computes itself (`id` is None)."""

    name: str  # DCGM_FI_DEV_GPU_TEMP: what exporters print
    id: int | None
    meaning: Text
    unit: str  # as the default exporter prints it
    kind: FieldKind
    entity: str  # gpu, node, vgpu, link, nvswitch, cpu, nic
    exported_by_default: bool  # uncommented in dcgm-exporter's default-counters.csv
    listed_but_off: bool = False  # stands there commented out
    aliases: tuple[Alias, ...] = ()
    traps: Text | None = None  # how it is commonly misread
    since: str = ""
    sources: tuple[str, ...] = ()
    disagrees: tuple[Disagreement, ...] = ()

    @classmethod
    def all_from(cls, data: Mapping[str, Any]) -> Iterator[DcgmField]:
        """The field of checked YAML, or one for each n of a name with ``{n}``."""
        ids = data.get("ids") or [data.get("id")]
        for n, number in enumerate(ids):
            traps = data.get("traps")
            yield cls(
                name=data["name"].replace("{n}", str(n)), id=number, meaning=Text.of(data["meaning"]),
                unit=data.get("unit", ""), kind=FieldKind(data["kind"]), entity=data.get("entity", "gpu"),
                exported_by_default=data["exported_by_default"], listed_but_off=data.get("listed_but_off", False),
                aliases=tuple(
                    Alias(a["name"].replace("{n}", str(n)), a["versions"]) for a in data.get("aliases", ())
                ),
                traps=Text.of(traps) if traps else None, since=data.get("since", ""),
                sources=tuple(data["sources"]), disagrees=Disagreement.all_of(data),
            )  # fmt: skip


@dataclass(frozen=True, slots=True)
class DcgmError:
    """One error code of DCGM's health watches and diagnostics."""

    name: str  # DCGM_FR_ROW_REMAP_FAILURE
    code: int | None  # None where the number changes with the version
    meaning: Text
    severity: str  # DCGM's: monitor, isolate, triage, config, reset, unknown
    category: str  # DCGM's: hardware_memory, ...
    action: str  # NVSentinel's for the code; empty where it names none
    bucket: str  # our advice, a word of data/buckets.yaml
    step: Text = NO_TEXT  # what to do, where the bucket's own words are too general
    command: str = ""  # that shows what to look at
    alias_of: str = ""  # present name, when this is an older one
    sources: tuple[str, ...] = ()
    disagrees: tuple[Disagreement, ...] = ()

    @classmethod
    def from_plain(cls, data: Mapping[str, Any]) -> DcgmError:
        """From checked YAML."""
        return cls(
            name=data["name"], code=data.get("code"), meaning=Text.of(data["meaning"]), severity=data["severity"],
            category=data["category"], action=data.get("action", ""), bucket=data["bucket"],
            step=Text.of(data.get("step")), command=data.get("command", ""),
            alias_of=data.get("alias_of", ""), sources=tuple(data["sources"]), disagrees=Disagreement.all_of(data),
        )  # fmt: skip


@cache
def fields() -> Mapping[str, DcgmField]:
    """Every field by its name (each link and engine on its own)."""
    from knowledge.compiled import shard

    return {f.name: f for data in shard("dcgm_fields") for f in DcgmField.all_from(data)}


@cache
def _by_alias() -> Mapping[str, DcgmField]:
    return {a.name: f for f in fields().values() for a in f.aliases}


@cache
def _by_id() -> Mapping[int, DcgmField]:
    return {f.id: f for f in fields().values() if f.id is not None}


def field(word: str | int) -> DcgmField | None:
    """The field of a name (of any version, ``dcgm_*`` of old exporters included) or of a number; else None."""
    text = str(word).strip()
    if text.isascii() and text.isdigit() and len(text) <= 6:
        return _by_id().get(int(text))
    return fields().get(text) or _by_alias().get(text)


@cache
def errors() -> Mapping[str, DcgmError]:
    """Every error code by name, older names included."""
    from knowledge.compiled import shard

    return {e.name: e for e in map(DcgmError.from_plain, shard("dcgm_errors"))}


# Small words of its messages, which the catalogue's own sentences may lack.
_SMALL = frozenset(
    ["a", "all", "an", "and", "any", "are", "as", "at", "be", "been", "by", "can", "could", "detected", "did", "does", "enable", "error", "errors", "failed", "field", "for", "from", "gpu", "gpus", "has", "have", "if", "in", "is", "it", "its", "more", "not", "now", "of", "on", "one", "or", "please", "reboot", "replace", "reset", "run", "see", "so", "than", "that", "the", "then", "there", "this", "to", "try", "was", "were", "when", "which", "will", "with"]
)  # fmt: skip


@cache
def words() -> frozenset[str]:
    """The words that errors are told with, in small letters: where a table has cut one, its halves are none."""
    return _SMALL | {w for e in errors().values() for w in re.findall(r"[a-z]+", e.meaning.en.lower())}


@cache
def _errors_by_code() -> Mapping[int, DcgmError]:
    return {e.code: e for e in errors().values() if e.code is not None and not e.alias_of}


# What DCGM's messages are about; the words stay over versions, the numbers do not always. The most telling stands first.
_SAID = (
    # GPU 2 has uncorrectable memory errors and row remappings are pending. Reset the GPU or reboot
    (lazy(r"\brow remap\w*\b.{0,40}\bpending\b|\bpending row remap", re.IGNORECASE), "PENDING_ROW_REMAP"),
    # A pending retired page has been detected in GPU 3.
    (lazy(r"\bpage retirements?\b.{0,40}\bpending\b|\bpending (?:page retirement|retired page)", re.IGNORECASE), "PENDING_PAGE_RETIREMENTS"),
    # GPU 1 had uncorrectable memory errors and row remapping failed. Run a field diagnostic on the GPU.
    (lazy(r"\brow remap\w*\b.{0,40}\bfail", re.IGNORECASE), "ROW_REMAP_FAILURE"),
    # A corrupt InfoROM has been detected in GPU 6. Flash the InfoROM to clear this corruption.
    (lazy(r"\bcorrupt\w*\b.{0,20}\binforom\b", re.IGNORECASE), "CORRUPT_INFOROM"),
    # A DBE was detected on GPU 4          Detected 3 volatile double-bit ECC error(s) in GPU 0.
    (lazy(r"\bDBEs?\b|\bdouble-bit\b|\buncorrectable memory errors?\b", re.IGNORECASE), "VOLATILE_DBE_DETECTED"),
    (lazy(r"\buncontained\b", re.IGNORECASE), "UNCONTAINED_ERROR"),
    (lazy(r"\bfallen off the bus\b|\bGPU is lost\b", re.IGNORECASE), "FALLEN_OFF_BUS"),
    # GPU 3's NvLink link 11 is currently down          Detected 2 NvLink errors on ... which exceeds threshold
    (lazy(r"\bNvLink\b.{0,40}\b(?:is|are) (?:currently )?down\b", re.IGNORECASE), "NVLINK_DOWN"),
    (lazy(r"\bNvLink\b.{0,80}\b(?:error|CRC|replay|recovery)", re.IGNORECASE), "NVLINK_ERROR_THRESHOLD"),
    # PCIe replay rate is too high: 51.2 per minute          Detected more than 8 PCIe replays per minute for GPU 0: 12
    (lazy(r"\bPCIe? replay", re.IGNORECASE), "PCI_REPLAY_RATE"),
    # GPU 5 GPU to host bandwidth 6.12 below minimum allowed 40.00.      Bandwidth of GPU 1 in direction host to device of test PCIe ...
    (lazy(r"\b(?:GPU to host|host to (?:GPU|device)|device to host|PCIe?)\b.{0,40}\bbandwidth\b|\bbandwidth\b.{0,60}\b(?:PCIe?|host)\b", re.IGNORECASE), "LOW_BANDWIDTH"),
    (lazy(r"\bmemory\b.{0,60}\bmis(?:match|compare)", re.IGNORECASE), "MEMORY_MISMATCH"),
    (lazy(r"\bthermal violation|\bdue to thermal|\btemperature\b.{0,60}\b(?:exceed|above|too high)", re.IGNORECASE), "TEMP_VIOLATION"),
    (lazy(r"\bpersistence mode\b", re.IGNORECASE), "PERSISTENCE_MODE"),
    (lazy(r"\bfabric manager\b", re.IGNORECASE), "FABRIC_MANAGER_TRAINING_ERROR"),
)  # fmt: skip


def meant(message: str, number: int | None = None) -> DcgmError | None:
    """The error that a message speaks of, else the one of its number; None when neither tells."""
    name = next((name for pattern, name in _SAID if pattern.search(message[:1000])), "")
    return error(name) if name else error(number) if number is not None else None


def error(word: str | int) -> DcgmError | None:
    """The error of a name (with or without ``DCGM_FR_``) or of a number; older names give their own entry."""
    text = str(word).strip()
    if text.isascii() and text.isdigit() and len(text) <= 6:
        return _errors_by_code().get(int(text))
    name = text.upper()
    return errors().get(name) or errors().get(f"DCGM_FR_{name}")


# The first suite of ``dcgmi diag -r`` that holds a test, by its name in the options: each suite holds the one before
# (DCGM, nvvs/src/NvidiaValidationSuite.cpp, FillTestVectors; https://docs.nvidia.com/datacenter/dcgm/latest/user-guide/dcgm-diagnostics.html).
_SUITES = {
    "software": 1, "denylist": 1, "blacklist": 1, "nvml_library": 1, "cuda_main_library": 1, "cuda_toolkit_library": 1,
    "cuda_toolkit_libraries": 1, "permissions_and_os_blocks": 1, "permissions_and_os_related_blocks": 1, "persistence_mode": 1,
    "environment_variables": 1, "page_retirement_row_remap": 1, "page_retirement": 1, "graphics_processes": 1, "inforom": 1,
    "fabric_manager": 1, "pcie": 2, "memory": 2, "gpu_memory": 2, "diagnostic": 3, "nvbandwidth": 3, "memory_bandwidth": 3,
    "sm_stress": 3, "targeted_stress": 3, "targeted_power": 3, "eud": 3, "eud_test": 3, "cpu_eud": 3, "cpu_eud_test": 3,
    "memtest": 4, "pulse_test": 4, "dcgmi_diag": 3,  # told by somebody who named no test: the suite that holds most
}  # fmt: skip


def run_of(test: str) -> str:
    """What ``dcgmi diag -r`` takes to run this test again: the suite that holds it, else its own name (as of the NCCL tests)."""
    name = re.sub(r"[^a-z0-9]+", "_", test.lower()).strip("_")
    return str(_SUITES.get(name, name))


# Values that DCGM gives instead of a measurement (dcgm_structs.h): a base, and the base plus 1, 2 or 3
# for not found, not supported and no permission. Strings have words of their own.
INT32_BLANK = 0x7FFFFFF0
INT64_BLANK = 0x7FFFFFFFFFFFFFF0
FP64_BLANK = 140737488355328.0
_REASONS = (
    (Status.NOT_ASKED, "blank: DCGM has no sample yet"),
    (Status.UNSUPPORTED, "not found"),
    (Status.UNSUPPORTED, "not supported"),
    (Status.DENIED, "no permission"),
)
_WORDS = {"<<<NULL>>>": 0, "<<<NOT_FOUND>>>": 1, "<<<NOT_SUPPORTED>>>": 2, "<<<NOT_PERM>>>": 3}


@dataclass(frozen=True, slots=True)
class Blank:
    """Why a field has no value."""

    status: Status
    detail: str


def blank(value: float | str) -> Blank | None:
    """The reason behind a blank value of DCGM, as a number or as printed; None when it is a measurement.

    Large numbers come through exporters as floats, so that the 64-bit blanks lose their last digits:
    all of them then read as a plain blank.
    """
    if isinstance(value, str):
        text = value.strip()
        if text in _WORDS:
            return Blank(*_REASONS[_WORDS[text]])
        try:
            value = int(text) if text.lstrip("-").isdigit() and len(text) < 25 else float(text)
        except ValueError:
            return None
    for base in (INT32_BLANK, INT64_BLANK, int(FP64_BLANK)):
        offset = value - base
        if 0 <= offset < len(_REASONS) and offset == int(offset):
            return Blank(*_REASONS[int(offset)])
    return None
