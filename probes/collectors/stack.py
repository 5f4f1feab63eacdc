"""Prints which versions of the driver stack lie and run on a node, raw, as one JSON document (``gpudiag/stack/1``).

Run as ``python -I -B stack.py --deadline SECONDS [--root DIR]``. Python 3.8 and later, standard library only. Kept are the
installed kernels and where their module nvidia lies (``/lib/modules/*/modules.dep``), what ``modinfo`` says of the module of the
running kernel, the version of the loaded one, the files of the driver's libraries and of its GSP firmware, CUDA toolkits
below ``/usr/local``, whether the system asks for a reboot, and of processes that hold an NVIDIA device open which of a fixed
list of libraries they have mapped, which of a fixed list of Python packages lie beside these, and of a mapped PyTorch its file
``version.py`` and the architectures that its library names. No other name is kept, and nothing of theirs is run.

/proc/PID/maps, and folders on a dead file server, can wait for ever: each process has a thread of its own, and one that has
not answered by the deadline is said to hang.
"""

from __future__ import annotations

import argparse
import errno
import json
import os
import re
import subprocess
import sys
import threading
import time
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Any

SCHEMA = "gpudiag/stack/1"
MARGIN = 0.3  # seconds before the deadline at which the document is written
CAP = 8 << 20  # bytes of one modules.dep: a distribution's has one MiB
STEP, LONGEST = 1 << 20, 512  # bytes: read at a time, and of the longest list of architectures
KERNELS, PROCESSES, NAMES = 16, 64, 20_000  # at most: kernels, processes, names of one folder
FOLDERS = (
    "/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib64", "/usr/lib", "/usr/local/nvidia/lib64",
    "/run/nvidia/driver/usr/lib/x86_64-linux-gnu", "/run/nvidia/driver/usr/lib/aarch64-linux-gnu", "/run/nvidia/driver/usr/lib64",
)  # fmt: skip
LIBRARIES = ("libcuda", "libnvidia-ml", "libdcgm")
# updates/dkms/nvidia.ko.zst: kernel/lib/...        extra/nvidia.ko.xz:        kernel/nvidia-550srv/nvidia.ko:
MODULE = re.compile(r"(?m)^([^\s:]{0,200}/)?(nvidia\.ko(?:\.[a-z0-9]{1,4})?):")
# 7f1c...-7f1d... r-xp 00000000 08:01 1234   /usr/lib/x86_64-linux-gnu/libcuda.so.550.90.07
MAPPED = re.compile(
    r"(?m)^[0-9a-f]+-[0-9a-f]+ \S{4} \S+ \S+ \d+ +(/[^\n]{0,2000}/"
    r"(lib(?:cuda|cudart|nccl|cudnn|torch_cuda|torch_python|nvidia-ml|vgpu|softmig|dcgm)(?:-[0-9a-f]{8})?\.so[.0-9]{0,40}))(?: \(deleted\))?$"
)
PACKAGES = re.compile(
    r"(torch|vllm|sglang|triton|nvidia_(?:nccl|cuda_runtime|cudnn|nvshmem)(?:_cu\d{2})?|deepspeed|transformer_engine|flash_attn)"
    r"-([0-9][0-9A-Za-z.+!_]{0,60})\.dist-info"
)
# sm_50 sm_60 sm_70 sm_75 sm_80 sm_86 sm_90 compute_90      what torch.cuda.get_arch_list() gives, as it lies in the library
ARCHITECTURES = re.compile(rb"\0((?:sm|compute)_\d{2,3}[af]?(?: (?:sm|compute)_\d{2,3}[af]?){0,40})\0")
# version:        550.90.07
FIELD = re.compile(r"(?m)^(version|license|filename): +(\S[^\n]{0,300})$")
SITE = re.compile(r"^(/.{0,2000}?/(?:site|dist)-packages)/")


def said(error: OSError) -> dict[str, str]:
    """An OS error as text: its name, then the kernel's words."""
    return {"error": f"{errno.errorcode.get(error.errno or 0, error.errno)}: {error.strerror}"}


def read(path: str, cap: int = 1 << 16) -> Any:
    """The text of a file, or why there is none."""
    try:
        with Path(path).open("rb") as handle:
            return handle.read(cap).decode("utf-8", "replace")
    except OSError as error:
        return said(error)


def names(path: str) -> Any:
    """What a folder holds, sorted, or why that is not known."""
    try:
        with os.scandir(path) as entries:
            return sorted(entry.name for entry in islice(entries, NAMES))
    except OSError as error:
        return said(error)


class Node:
    """One look at the node below `root`."""

    def __init__(self, root: str, until: float) -> None:
        self.root, self.until = root, until
        self.compiled: dict[tuple[int, int], tuple[threading.Lock, dict[str, Any]]] = {}

    def at(self, path: str) -> str:
        """A path below the root."""
        return self.root + path

    def kernels(self) -> Any:
        """The installed kernels, with the module nvidia of each."""
        found = names(self.at("/lib/modules"))
        if not isinstance(found, list):
            return found
        out = []
        for release in found[-KERNELS * 4 :]:
            dep = read(self.at(f"/lib/modules/{release}/modules.dep"), CAP)
            if not isinstance(dep, str):
                continue  # a folder that is left of a kernel that was removed
            boots = any(
                Path(self.at(p)).exists() for p in (f"/boot/vmlinuz-{release}", f"/lib/modules/{release}/vmlinuz")
            )
            module = MODULE.search(dep)
            out.append(
                {"release": release, "boots": boots, "module": (module[1] or "") + module[2] if module else None}
            )
        return out[-KERNELS:]

    def module(self, release: str) -> Any:
        """What modinfo says of the module nvidia that lies on disk for `release`."""
        argv = ["modinfo", *(["-b", self.root] if self.root else []), "-k", release, "nvidia"]
        try:
            done = subprocess.run(
                argv, stdin=subprocess.DEVNULL, capture_output=True,
                timeout=max(0.2, self.until - time.monotonic()), check=False,
            )  # fmt: skip
        except OSError as error:
            return said(error)
        except subprocess.TimeoutExpired as error:
            return {"hung": "modinfo nvidia", "seconds": round(error.timeout, 1)}
        if done.returncode:
            return {"error": "ENOENT: " + done.stderr.decode("utf-8", "replace").strip()[:300]}
        fields = dict(FIELD.findall(done.stdout[: 1 << 16].decode("utf-8", "replace")))
        return {name: fields.get(name, "")[:300] for name in ("version", "license", "filename")}

    def libraries(self) -> list[dict[str, Any]]:
        """The libraries of the driver and of DCGM: whole names, and what libcuda.so.1 leads to."""
        out = []
        for folder in FOLDERS:
            where = self.at(folder)
            files = sorted(str(f) for n in LIBRARIES for f in Path(where).glob(f"{n}.so.*"))
            for path in files[:40]:
                link: str | None = None
                with suppress(OSError):
                    link = os.readlink(path)  # noqa: PTH115 - Path has it from Python 3.9 on
                out.append({"path": path[len(self.root) :], "link": link})
        return out

    def firmware(self) -> Any:
        """Versions of which GSP firmware lies below /lib/firmware/nvidia."""
        found = names(self.at("/lib/firmware/nvidia"))
        if not isinstance(found, list):
            return found
        return [n for n in found if any(Path(self.at(f"/lib/firmware/nvidia/{n}")).glob("gsp*.bin*"))][:40]

    def toolkits(self) -> dict[str, Any]:
        """CUDA toolkits below /usr/local, and which one /usr/local/cuda is."""
        out: dict[str, Any] = {"default": None, "found": []}
        for path in sorted(map(str, Path(self.at("/usr/local")).glob("cuda*")))[:20]:
            name = path[len(self.root) :]
            text = read(f"{path}/version.json")
            if not isinstance(text, str):
                text = read(f"{path}/version.txt")
            if not isinstance(text, str):
                continue
            if name == "/usr/local/cuda":
                out["default"] = text[:4096]
            elif not Path(path).is_symlink():
                out["found"].append({"path": name, "text": text[:4096]})
        return out

    def reboot(self) -> dict[str, Any]:
        """Whether the system asks for a reboot (Debian and its kin), and for which packages."""
        required = Path(self.at("/run/reboot-required")).exists()
        packages = read(self.at("/run/reboot-required.pkgs")) if required else ""
        lines = packages.split() if isinstance(packages, str) else []
        return {"known": Path(self.at("/run")).is_dir(), "required": required, "packages": sorted(set(lines))[:60]}

    def processes(self) -> list[dict[str, Any]]:
        """Processes that hold an NVIDIA device open, with what they have mapped."""
        proc = self.at("/proc")
        listed = names(proc)
        pids = [n for n in listed if n.isdigit()] if isinstance(listed, list) else []
        jobs: list[tuple[threading.Thread, dict[str, Any]]] = []
        for pid in sorted(pids, key=int):
            if len(jobs) >= PROCESSES or time.monotonic() > self.until:
                break
            if holds(f"{proc}/{pid}/fd"):
                job: dict[str, Any] = {"pid": int(pid)}
                thread = threading.Thread(target=self.process, args=(job,), daemon=True)
                thread.start()
                jobs.append((thread, job))
        out = []
        for thread, job in jobs:
            thread.join(max(0.0, self.until - time.monotonic()))
            said_ = dict(job)
            if thread.is_alive():
                said_["hung"] = said_.pop("doing", f"/proc/{job['pid']}/maps")
            said_.pop("doing", None)
            out.append(said_)
        return out

    def process(self, job: dict[str, Any]) -> None:
        """Fill in what `job` has mapped; runs in a thread that may never come back."""
        base = f"/proc/{job['pid']}"
        job["doing"] = f"{base}/maps"
        text = read(self.at(f"{base}/maps"), 16 << 20)
        if not isinstance(text, str):
            job.update(text)
            return
        found = {m[1]: m[2] for m in MAPPED.finditer(text)}
        job["libraries"] = sorted(found)[:40]
        sites = sorted({m[1] for path in found for m in [SITE.match(path)] if m})[:4]
        packages: dict[str, str] = {}
        for site in sites:
            job["doing"] = f"{base}/root{site}"
            listed = names(self.at(f"{base}/root{site}"))
            if isinstance(listed, dict):
                job["packages_error"] = listed["error"]
                continue
            for match in map(PACKAGES.fullmatch, listed):
                if match:
                    packages.setdefault(match[1], match[2])
        job["packages"] = packages
        if torch := next((path for path in sorted(found) if found[path] == "libtorch_python.so"), ""):
            job["doing"] = f"{base}/root{torch}"
            job["torch"] = self.torch(self.at(f"{base}/root{torch}"))

    def torch(self, library: str) -> dict[str, Any]:
        """The version.py of a PyTorch and the architectures it was compiled for; ranks that share the file read it once."""
        out: dict[str, Any] = {"version": read(str(Path(library).parents[1] / "version.py"), 4096)}
        try:
            what = os.stat(library)  # noqa: PTH116 - a string comes in
            lock, kept = self.compiled.setdefault((what.st_dev, what.st_ino), (threading.Lock(), {}))
            with lock:
                if not kept:
                    kept["architectures"] = compiled_for(library, self.until)
            out["architectures"] = kept["architectures"]
        except OSError as error:
            out["architectures"] = said(error)
        return out


def compiled_for(library: str, until: float) -> Any:
    """The lists of architectures that stand in a library as texts of their own, or why that is not known."""
    found: list[str] = []
    with Path(library).open("rb") as handle:
        tail = b""
        while chunk := handle.read(STEP):
            if time.monotonic() > until:
                return {"error": "deadline: the library was not read to its end"}
            text = tail + chunk
            # looked for as plain bytes: a pattern over tens of megabytes takes seconds
            if b"\0sm_" in text or b"\0compute_" in text:
                found += [m[1].decode() for m in ARCHITECTURES.finditer(text)]
            tail = text[-LONGEST:]
    return sorted(set(found))[:4]


def holds(folder: str) -> bool:
    """Whether a process has a device of the NVIDIA driver open; False where that cannot be seen."""
    try:
        with os.scandir(folder) as entries:
            return any(link(e.path).startswith("/dev/nvidia") for e in islice(entries, 4096))
    except OSError:
        return False


def link(path: str) -> str:
    """Where a link leads; empty where that cannot be seen."""
    try:
        return os.readlink(path)  # noqa: PTH115 - many of them, and Path has it from Python 3.9 on
    except OSError:
        return ""


def main() -> int:
    """Look, print."""
    parser = argparse.ArgumentParser(description="versions of the driver stack; prints JSON")
    parser.add_argument("--deadline", type=float, default=10.0)
    parser.add_argument("--root", default="")
    options = parser.parse_args()
    node = Node(options.root.rstrip("/"), time.monotonic() + max(0.2, options.deadline - MARGIN))
    release = read(node.at("/proc/sys/kernel/osrelease"))
    release = release.strip() if isinstance(release, str) else os.uname().release
    host = read(node.at("/proc/sys/kernel/hostname"))
    document = {
        "schema": SCHEMA,
        "host": host.strip() if isinstance(host, str) else "",
        "at_ns": time.time_ns(),
        "kernel": release,
        "loaded": read(node.at("/sys/module/nvidia/version")),
        "kernels": node.kernels(),
        "module": node.module(release),
        "libraries": node.libraries(),
        "firmware": node.firmware(),
        "toolkits": node.toolkits(),
        "reboot": node.reboot(),
        "processes": node.processes(),
    }
    sys.stdout.write(json.dumps(document) + "\n")
    sys.stdout.flush()
    os._exit(0)  # a thread that hangs in a dead file server would keep the process


if __name__ == "__main__":
    raise SystemExit(main())
