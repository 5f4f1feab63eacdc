"""Short names for display. The full name is kept wherever numbers are joined or exported."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final, NamedTuple

from knowledge.text import clean

_LONGEST: Final = 4096  # characters that are looked at: a name of a megabyte is one that someone made up
_PYTHON = re.compile(r"^(?P<file>.{1,1000}?)\((?P<line>\d{1,9})\): (?P<function>.+)$", re.DOTALL)
_UNNUMBERED = re.compile(r"^\S{1,1000}\.pyx?: ")  # a Python frame without its line, as `align` shows it
_DROPPED = re.compile(
    r"\(anonymous namespace\)::|\banonymous-namespace'?::|at::native::|at::cuda::|c10::cuda::|at::detail::|\bstatic "
)
_OPERATORS = re.compile(r"operator(?:<<=?|>>=?|<=>|<=?|>=?|->\*?|\(\))")
_PLAIN = re.compile(
    r"^(?:(?:const|unsigned|signed|long|int|short|char|float|double|bool|void|true|false|half|__half|__nv_bfloat16|__hip_bfloat16|"
    r"c10::(?:BFloat16|Half)|BFloat16|Half|std::\w+|float[234])(?:[ *&]|$)|[-+]?\d|\()"
)
# Templates that only carry what does the work: what they are given says more.
_WRAPPERS: Final = frozenset(
    [
        "gpu_kernel_impl",
        "gpu_kernel_impl_nocast",
        "gpu_index_kernel",
        "AUnaryFunctor",
        "BUnaryFunctor",
        "BinaryFunctor",
        "ReduceOp",
        "func_wrapper_t",
        "TrivialOffsetCalculator",
        "OpMathFunctor",
        "Array",
        "array",
        "TensorListMetadata",
        "OffsetCalculator",
        "OpaqueType",
    ]
)
_CARRIERS: Final = frozenset(
    ["Array", "array", "TensorListMetadata", "OffsetCalculator", "TrivialOffsetCalculator", "OpaqueType"]
)


class Frame(NamedTuple):
    """A Python frame as the profiler writes it: ``train.py(42): step``."""

    file: str
    line: int
    function: str


def frame_of(name: str) -> Frame | None:
    """The parts of a Python frame's name; None when it is none (``nn.Module: Linear_0``, ``<built-in method ...>``)."""
    found = _PYTHON.match(name[:_LONGEST])
    return Frame(found["file"], int(found["line"]), found["function"]) if found else None


@lru_cache(maxsize=65536)
def short(name: str, width: int = 60) -> str:
    """`name` in at most `width` characters.

    Of a demangled C++ name the return type and parameters go, namespaces that are everywhere, and template arguments
    but for the first that says something, or for the numbers and plain types that there is room for; of a path all but its last two parts. What is
    still too long loses its middle, since generated names (CUTLASS, nvjet, Tensile) differ at both ends.
    """
    text = " ".join(clean(name[:_LONGEST]).split()) or "?"
    frame = frame_of(text)
    if frame:
        return elide(f"{'/'.join(frame.file.split('/')[-2:])}({frame.line}): {frame.function}", width)
    if text.startswith("<") or _UNNUMBERED.match(text):
        return elide(text, width)
    if text.startswith("_ZN"):
        text = _mangled(text)
    elif "::" in text or "<" in text or text.startswith("void "):
        text = _demangled(text, width)
    return elide(text, width)


def elide(text: str, width: int) -> str:
    """`text`, without its middle if it is longer than `width`."""
    if len(text) <= width:
        return text
    if width < 8:
        return text[: max(width, 1)]
    tail = (width - 1) // 3
    return f"{text[: width - 1 - tail]}…{text[-tail:]}"


def _demangled(name: str, width: int) -> str:
    text = _OPERATORS.sub("operator", _DROPPED.sub("", name))
    if text.startswith(("Memcpy", "Memset")):
        return text
    base, arguments = _split(text)
    if not arguments:
        return base
    hint = _telling(arguments, 0)
    if not hint:
        return _with_arguments(base, arguments, width)
    full = f"{base}<{hint}, ...>"
    return full if len(full) <= width or len(base) + 5 > width else f"{base}<{elide(hint, width - len(base) - 2)}>"


def _with_arguments(base: str, arguments: list[str], width: int) -> str:
    """Numbers and plain types, as many as there is room for: they tell the variants of a kernel apart."""
    for many in range(len(arguments), 0, -1):
        found = f"{base}<{', '.join(arguments[:many])}{'' if many == len(arguments) else ', ...'}>"
        if len(found) <= width:
            return found
    return f"{base}<...>"


def _split(text: str) -> tuple[str, list[str]]:
    """A name without return type, namespaces of CUTLASS kept, and the arguments of its last template."""
    depth = begin = 0
    base, arguments, arg = "", [""], ""
    seen = False
    for i, char in enumerate(text):
        if depth == 0 and char in "(" and i > begin:
            break
        if char in "<({[":
            depth += 1
            if depth == 1 and char == "<":
                arguments, arg, seen = [], "", True
                continue
        elif char in ">)}]":
            depth = max(depth - 1, 0)
            if depth == 0 and char == ">":
                arguments.append(arg.strip())
                arg = ""
                continue
        elif depth == 0 and char == " ":
            base, begin = "", i + 1
            continue
        if depth == 0:
            base += char
        elif depth == 1 and char == ",":
            arguments.append(arg.strip())
            arg = ""
        else:
            arg += char
    if seen and arg.strip():  # cut off within its arguments
        arguments.append(arg.strip())
    return base or text, arguments if seen else []


def _telling(arguments: list[str], level: int) -> str:
    """The first argument that is neither a number nor a plain type, without its own arguments."""
    for argument in arguments:
        if _PLAIN.match(argument):
            continue
        base, inner = _split(argument)
        leaf = base.removesuffix("::operator").rsplit("::", 1)[-1]
        if leaf in _CARRIERS:
            continue
        if leaf in _WRAPPERS and level < 8 and (found := _telling(inner, level + 1)):
            return found
        return leaf
    return ""


def _mangled(name: str) -> str:
    """The nested name in front of a mangled name's template arguments: ``_ZN2ck16tensor_operation...``."""
    parts, at = [], 3
    while (found := re.compile(r"\d{1,4}").match(name, at)) is not None:
        at = found.end() + int(found[0])
        part = name[found.end() : at]
        if not part.startswith("_GLOBAL__N_"):
            parts.append(part)
    return "::".join(parts) + ("<...>" if name[at : at + 1] == "I" else "") if parts else name
