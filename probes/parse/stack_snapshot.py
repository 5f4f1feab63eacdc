"""Output of the collector `stack`: versions of the driver, its libraries and firmware, of CUDA, and of what jobs have mapped."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from knowledge.compatibility import numbers
from knowledge.observation import Observation, Scope, Status, Subject
from probes.base import Context, DocumentFormat
from probes.parse import _host_snapshot as shared
from probes.parse import _torch_files as torch_files
from probes.parse._host_snapshot import Snapshot, gap, mapping, mappings, words
from probes.parse._smi_values import Reading

NAME, REVISION, SCHEMA = "stack-snapshot", 2, "gpudiag/stack/1"
OF_PROCESS = (
    "process.torch.version", "process.cuda.version", "process.nccl.version", "process.driver_library.version",
    "process.gpu_interposers", *torch_files.FACTS,
)  # fmt: skip
PROVIDES = (
    "node.driver.installed_version", "node.driver.loaded_version", "node.driver.library_version",
    "node.driver.firmware_present", "node.kernel.newest", "node.kernel.newest.has_driver", "node.reboot_required",
    "node.cuda.toolkit.version", "node.dcgm.version", *OF_PROCESS,
)  # fmt: skip
_MODULES = "/lib/modules/*/modules.dep"
# libcuda.so.550.90.07   libcuda.so.570.86.15
_LIBCUDA = re.compile(r"/libcuda\.so\.(\d{2,4}\.\d{1,4}(?:\.\d{1,4})?)")
# libdcgm.so.4.2.3   libdcgm.so.3.3.5
_LIBDCGM = re.compile(r"/libdcgm\.so\.(\d{1,2}\.\d{1,3}\.\d{1,3})")
# "cuda" : { "name" : "CUDA SDK", "version" : "12.4.1" }     CUDA Version 10.2.89
_TOOLKIT = re.compile(
    r'"cuda"\s{0,4}:\s{0,4}\{[^{}]{0,200}"version"\s{0,4}:\s{0,4}"(\d[\d.]{0,20})"|CUDA Version (\d[\d.]{0,20})'
)
# libcudart.so.12.4.127   libcudart.so.12   libcudart-d0da41ae.so.11.0
_SO = re.compile(r"/lib(cudart|nccl)(?:-[0-9a-f]{8})?\.so\.(\d{1,4}(?:\.\d{1,4}){0,3})")
# Packages whose version is that of the library which they hold, in the order in which they are believed.
_PACKAGES = {
    "process.cuda.version": "nvidia_cuda_runtime",
    "process.nccl.version": "nvidia_nccl",
    "process.torch.version": "torch",
}
# Libraries that stand between a program and the driver and enforce shares of a GPU: HAMi, SoftMig.
_INTERPOSERS = frozenset({"libvgpu.so", "libsoftmig.so"})
_LIBRARIES = {"process.cuda.version": "cudart", "process.nccl.version": "nccl"}


def sniff(head: str) -> int:
    """100 on the schema."""
    return shared.sniff(head, SCHEMA)


def parse(text: str, context: Context) -> list[Observation]:
    """Observations of one document."""
    document = shared.document(text, SCHEMA)
    emit = Snapshot(context, NAME, REVISION, document)
    if not document:
        broken = Reading(None, Status.FAILED, "the document is cut or is no JSON")
        for fact in ("node.driver.installed_version", "node.kernel.newest"):
            emit.add(fact, emit.node, broken, emit.name)
        return emit.out
    _module(emit, document)
    _kernels(emit, document)
    _libraries(emit, document)
    _dcgm(emit, document)
    _firmware(emit, document)
    _toolkit(emit, mapping(document.get("toolkits")))
    _reboot(emit, mapping(document.get("reboot")))
    for process in mappings(document.get("processes")):
        _process(emit, process)
    return emit.out


def _version(value: object, call: str) -> Reading | str:
    """A version as a file or a tool gives it."""
    if isinstance(value, dict):
        return gap(value) or Reading(None, Status.FAILED, f"{call} was not understood")
    text = value.strip() if isinstance(value, str) else ""
    if not numbers(text):
        return Reading(None, Status.FAILED, f"{call} names no version")
    return text


def _module(emit: Snapshot, document: Mapping[str, Any]) -> None:
    loaded = _version(document.get("loaded"), "/sys/module/nvidia/version")
    emit.add(
        "node.driver.loaded_version",
        emit.node,
        loaded,
        "/sys/module/nvidia/version",
        loaded if isinstance(loaded, str) else "",
    )
    module = mapping(document.get("module"))
    installed = gap(module) or _version(module.get("version"), "modinfo nvidia")
    shown = (
        f"version: {module.get('version')}, filename: {module.get('filename')}" if isinstance(installed, str) else ""
    )
    emit.add("node.driver.installed_version", emit.node, installed, "modinfo nvidia", shown)


def _order(release: str) -> tuple[tuple[int, int | str], ...]:
    """A kernel's release as something that sorts as its versions do: 6.8.0-9 before 6.8.0-45."""
    return tuple((1, int(p)) if p.isdigit() else (0, p) for p in re.findall(r"\d{1,9}|[a-z]{1,40}", release.lower()))


def _kernels(emit: Snapshot, document: Mapping[str, Any]) -> None:
    found = document.get("kernels")
    if not isinstance(found, list):
        why = gap(mapping(found)) or Reading(None, Status.FAILED, "the kernels were not listed")
        emit.add("node.kernel.newest", emit.node, why, _MODULES)
        emit.add("node.kernel.newest.has_driver", emit.node, why, _MODULES)
        return
    running = document.get("kernel")
    kernels = [
        k for k in mappings(found) if isinstance(k.get("release"), str) and (k.get("boots") or k["release"] == running)
    ]
    if not kernels:
        none = Reading(
            None, Status.UNSUPPORTED, "no installed kernel was seen: a container, or kernels that lie elsewhere"
        )
        emit.add("node.kernel.newest", emit.node, none, _MODULES)
        return
    newest = max(kernels, key=lambda k: _order(k["release"]))
    emit.add("node.kernel.newest", emit.node, newest["release"], _MODULES, f"running: {running}")
    ours = next((k for k in kernels if k["release"] == running), None)
    has: Reading | bool = newest.get("module") is not None
    if ours is None or ours.get("module") is None:
        has = Reading(
            None,
            Status.NOT_APPLICABLE,
            "the running kernel has no module nvidia on disk: nothing was installed for it there",
        )
    shown = f"{newest['release']}: {newest.get('module') or 'no nvidia.ko'}; {running}: {ours and ours.get('module')}"
    emit.add("node.kernel.newest.has_driver", emit.node, has, _MODULES, shown)


def _libraries(emit: Snapshot, document: Mapping[str, Any]) -> None:
    rows = [(str(r.get("path", "")), str(r.get("link") or "")) for r in mappings(document.get("libraries"))]
    # the driver's container has libraries of its own, which programs of the node do not load
    rows = [row for row in rows if not row[0].startswith("/run/nvidia/")]
    linked = [m for path, to in rows if path.endswith("/libcuda.so.1") for m in [_LIBCUDA.search("/" + to)] if m]
    there = linked or [m for path, _ in rows for m in [_LIBCUDA.search(path)] if m]
    versions = sorted({m[1] for m in there})
    reading: Reading | str = Reading(
        None, Status.UNSUPPORTED, "no libcuda.so lies in the folders of the node's libraries"
    )
    if len(versions) == 1:
        reading = versions[0]
    elif versions:
        reading = Reading(
            None, Status.FAILED, f"several lie there, and no link tells which counts: {', '.join(versions)}"
        )
    shown = "; ".join(f"{path} -> {to}" if to else path for path, to in rows if "libcuda.so" in path)
    emit.add("node.driver.library_version", emit.node, reading, "libcuda.so.*", shown)


def _dcgm(emit: Snapshot, document: Mapping[str, Any]) -> None:
    """DCGM of the node by the name of its library; where none is installed, that of a container whose program has mapped one."""
    call = "libdcgm.so.*"
    here = [str(r.get("path", "")) for r in mappings(document.get("libraries"))]
    mapped = [p for process in mappings(document.get("processes")) for p in words(process.get("libraries"))]
    for paths, where in ((here, call), (mapped, f"/proc/PID/maps: {call}")):
        found = {m[1]: path for path in paths for m in [_LIBDCGM.search(f"/{path}")] if m}
        if len(found) == 1:
            [(version, path)] = found.items()
            emit.add("node.dcgm.version", emit.node, version, where, path)
            return
        if found:
            several = Reading(None, Status.FAILED, f"several versions are there: {', '.join(sorted(found))}")
            emit.add("node.dcgm.version", emit.node, several, where, ", ".join(found.values()))
            return
    none = Reading(
        None,
        Status.UNSUPPORTED,
        "no libdcgm lies in the folders of the node's libraries, and no program was seen with one",
    )
    emit.add("node.dcgm.version", emit.node, none, call)


def _firmware(emit: Snapshot, document: Mapping[str, Any]) -> None:
    found, loaded = document.get("firmware"), document.get("loaded")
    call = "/lib/firmware/nvidia/*/gsp*.bin"
    if not isinstance(loaded, str) or not numbers(loaded):
        reading: Reading | bool = Reading(None, Status.NOT_APPLICABLE, "no NVIDIA driver is loaded")
    elif mapping(document.get("module")).get("version") is None:
        reading = Reading(None, Status.NOT_APPLICABLE, "the driver was not installed on this file system")
    elif not isinstance(found, list):
        reading = gap(mapping(found)) or Reading(None, Status.FAILED, "the folder was not listed")
    else:
        reading = loaded.strip() in words(found)
    emit.add("node.driver.firmware_present", emit.node, reading, call, ", ".join(words(found)))


def _toolkit(emit: Snapshot, found: Mapping[str, Any]) -> None:
    default = _TOOLKIT.search(str(found.get("default") or ""))
    others = [
        (str(t.get("path")), m)
        for t in mappings(found.get("found"))
        for m in [_TOOLKIT.search(str(t.get("text")))]
        if m
    ]
    if default:
        emit.add("node.cuda.toolkit.version", emit.node, default[1] or default[2], "/usr/local/cuda", default[0])
    elif others:
        path, newest = max(others, key=lambda t: numbers(t[1][1] or t[1][2]))
        emit.add("node.cuda.toolkit.version", emit.node, newest[1] or newest[2], path, newest[0])
    else:
        emit.add(
            "node.cuda.toolkit.version",
            emit.node,
            Reading(None, Status.UNSUPPORTED, "no toolkit lies below /usr/local"),
            "/usr/local/cuda*",
        )


def _reboot(emit: Snapshot, found: Mapping[str, Any]) -> None:
    # Without the file nothing follows where no system writes it; where one does, none is needed.
    if found.get("required") is True:
        emit.add(
            "node.reboot_required", emit.node, True, "/run/reboot-required", ", ".join(words(found.get("packages")))
        )


def _process(emit: Snapshot, process: Mapping[str, Any]) -> None:
    pid = process.get("pid")
    if not isinstance(pid, int) or isinstance(pid, bool):
        return
    subject, call = Subject(Scope.PROCESS, str(pid), emit.node), f"/proc/{pid}/maps"
    why = gap(process)
    if why is not None:
        for fact in OF_PROCESS:
            emit.add(fact, subject, why, call)
        return
    libraries = [f"/{path.lstrip('/')}" for path in words(process.get("libraries"))]
    packages = {k: v for k, v in mapping(process.get("packages")).items() if isinstance(v, str)}
    for fact, reading, shown in (*_of_process(libraries, packages), *torch_files.read(process.get("torch"))):
        emit.add(fact, subject, reading, call, shown)


def _of_process(
    libraries: list[str], packages: Mapping[str, str]
) -> Iterator[tuple[str, Reading | str | tuple[str, ...], str]]:
    """Facts of a process: a library's own name where it holds a whole version and lies outside of the packages, else the package."""
    for fact, package in _PACKAGES.items():
        name = _LIBRARIES.get(fact, "")
        mapped = [(m[2], path) for path in libraries for m in [_SO.search(path)] if m and m[1] == name]
        outside = [v for v, path in mapped if "-packages/" not in path]
        told = next((v for p, v in sorted(packages.items()) if p == package or p.startswith(f"{package}_cu")), "")
        if fact == "process.torch.version":
            if told:
                yield fact, told, f"torch-{told}.dist-info"
            continue
        if not mapped:
            continue
        whole = [v for v in outside if "." in v]
        of_package = told if told and not outside else mapped[0][0]
        value = whole[0] if whole else of_package
        if fact == "process.nccl.version" and "." not in value:
            yield (
                fact,
                Reading(None, Status.UNSUPPORTED, f"its file is called {mapped[0][1]}, which tells no whole version"),
                "",
            )
        else:
            yield fact, value, mapped[0][1]
    between = tuple(sorted({name for path in libraries if (name := path.rpartition("/")[2]) in _INTERPOSERS}))
    yield "process.gpu_interposers", between or Reading(None, Status.NONE_SEEN), ", ".join(between)
    drivers = sorted({m[1] for path in libraries for m in [_LIBCUDA.search(path)] if m})
    if len(drivers) == 1:
        yield "process.driver_library.version", drivers[0], next(p for p in libraries if drivers[0] in p)


FORMAT = DocumentFormat(
    NAME, "snapshot of the driver stack's versions (gpudiag collector)", REVISION, PROVIDES, sniff, parse
)
