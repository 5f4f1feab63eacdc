"""The parts of a kernel's name: its own qualified name without types, and where its template arguments matter.

A kernel stands in a trace as a demangled C++ signature, a mangled symbol, or a bare symbol (assembly, Triton). What
it is called is said by the name in front of the template arguments and parameters; those hold the names of anything.
"""

from __future__ import annotations

import re
from typing import Final

LONGEST: Final = 4096  # characters that are looked at: longer names are template arguments to the end

# std::enable_if<!(false), void>::type internal::gemvx::kernel<int, ...>(...)   (cuBLAS)
_RETURNS: Final = re.compile(r"^(?:std::enable_if<.{0,400}?>::type |decltype\(.{0,200}?\) |static |void |__global__ )+")
_ANONYMOUS: Final = re.compile(r"\(anonymous namespace\)::|\(unnamed\)::|_GLOBAL__N_1::|<unnamed>::")

# Kernels that only carry what runs in them as a template argument.
_WRAPPERS: Final = re.compile(
    r"^cutlass(?:_\w+)?::(?:Kernel\d?|device_kernel)$|^ck_tile::kentry|(?:^|::)trampoline_kernel$|_kernel_agent$"
    r"|^ck::kernel_\w+$|(?:^|::)multi_tensor_apply_kernel|elementwise_kernel|(?:^|::)cudaKernel$|cub::.*static_kernel$"
)
_WRAPPER_WORDS: Final = (
    "cutlass",
    "kentry",
    "trampoline",
    "agent",
    "ck::kernel",
    "multi_tensor",
    "elementwise",
    "cudaKernel",
    "static_kernel",
)


def stem(name: str) -> str:
    """The kernel's own qualified name: ``at::native::reduce_kernel``, ``deep_ep::intranode::dispatch``, ``volta_sgemm_128x64_nn``."""
    name = name[:LONGEST]
    if name.startswith("_Z"):
        return _mangled(name) or name
    name = _ANONYMOUS.sub("", _RETURNS.sub("", name))
    cut = len(name)
    for mark in "<(":
        if 0 < (at := name.find(mark)) < cut:
            cut = at
    return name[:cut].strip()


def telling(name: str, own: str) -> str:
    """What of `name` tells what the kernel does: its stem `own`, and for a wrapper its template arguments as well."""
    if not any(word in own for word in _WRAPPER_WORDS) or not _WRAPPERS.search(own):
        return own
    name = name[:LONGEST]
    if name.startswith("_Z"):
        return name
    cut = name.rfind(">(")  # the parameters behind the template arguments only repeat them
    return name[: cut + 1] if cut > 0 else name


def bare(name: str) -> bool:
    """Whether the name is a plain symbol, as Triton's kernels, those of assemblers and of old compilers are."""
    return not name.startswith("_Z") and "<" not in name and "(" not in name and "::" not in name


def _mangled(name: str) -> str:
    """The nested names of an Itanium-mangled symbol, without its template arguments; empty when it is none."""
    at = 2
    nested = name[at : at + 1] == "N"
    at += nested
    parts: list[str] = []
    while at < len(name):
        if name.startswith(("St", "Sa", "Sb", "Ss"), at):  # std:: and its abbreviations
            at += 2
            continue
        if name[at] in "KLr" and nested:
            at += 1
            continue
        digits = at
        while at < len(name) and name[at].isdigit() and at - digits < 6:
            at += 1
        if at == digits:
            break
        size = int(name[digits:at])
        part = name[at : at + size]
        at += size
        if not part.startswith("_GLOBAL__N"):
            parts.append(part)
        if not nested:
            break
    return "::".join(parts)
