"""Version lines of the tools and daemons of a GPU node: ``nv-fabricmanager --version``, ``docker --version``..."""

from __future__ import annotations

import re

from knowledge.lazy import lazy
from knowledge.observation import Observation
from knowledge.text import clean
from probes.base import Context, DocumentFormat
from probes.parse._host_snapshot import Snapshot

NAME, REVISION = "tool-versions", 1
_NUMBER = r"(\d{1,5}(?:\.\d{1,5}){1,3}(?:[-+.~][0-9A-Za-z.+-]{1,30})?)"
PATTERNS = (
    # Fabric Manager version is : 550.90.07
    ("node.fabricmanager.version", rf"Fabric Manager version is\s{{0,4}}:\s{{0,4}}{_NUMBER}"),
    # IMEX version is: 550.90.07
    ("node.version.imex", rf"IMEX version is\s{{0,4}}:\s{{0,4}}{_NUMBER}"),
    # dcgmi  version: 3.3.5
    ("node.dcgm.version", rf"dcgmi\s{{1,4}}version:\s{{0,4}}{_NUMBER}"),
    # Docker Engine version 24.0.7                       (our own template of `docker version`)
    ("node.version.docker_server", rf"Docker Engine version {_NUMBER}"),
    # Docker version 24.0.7, build afdd53b
    ("node.version.docker", rf"Docker version {_NUMBER}, build .{{1,80}}"),
    # containerd github.com/containerd/containerd v1.7.2 0cae528dd6cb557f7201036e9f43420650207b58
    # containerd containerd.io 1.6.33 d2d58213f83a351ca8f528a95fbd145f5654e957
    ("node.version.container_runtime", rf"containerd \S{{1,80}} v?{_NUMBER}(?: \S{{0,80}})?"),
    # crio version 1.28.4
    ("node.version.container_runtime", rf"crio version {_NUMBER}"),
    # Kubernetes v1.28.2
    ("node.version.kubelet", rf"Kubernetes v{_NUMBER}"),
    # slurm 23.02.6
    ("node.version.slurm", rf"slurm(?:-wlm)? {_NUMBER}"),
    # MLNX_OFED_LINUX-5.8-2.0.3.0:      OFED-internal-24.04-0.6.6:
    ("node.version.rdma_stack", r"((?:MLNX_OFED_LINUX|OFED-internal|DOCA-OFED|OFED)-\d[\w.-]{1,40}?):?"),
    # NVIDIA Container Toolkit CLI version 1.14.3
    ("node.version.container_toolkit", rf"NVIDIA Container Toolkit CLI version {_NUMBER}"),
)  # fmt: skip
_PATTERNS = tuple((fact, lazy(pattern)) for fact, pattern in PATTERNS)
_A_NUMBER = lazy(r"\d[.-]\d")  # stands in each of them
# Version : 3.3.5            (nv-hostengine, followed by the build)
_ENGINE = lazy(rf"^\s{{0,4}}Version\s{{0,4}}:\s{{0,4}}{_NUMBER}\s{{0,4}}$", re.MULTILINE)
_BUILD = lazy(r"^\s{0,4}Build ID\s{0,4}: ", re.MULTILINE)
PROVIDES = tuple(dict.fromkeys(fact for fact, _ in PATTERNS))
FEW = 40  # lines: a longer text quotes a version and is something else


def sniff(head: str) -> int:
    """80 on a short text in which such a line stands."""
    lines = [line for line in head.splitlines() if line.strip()]
    if not lines or len(lines) > FEW:
        return 0
    told = [clean(line).strip() for line in lines if _A_NUMBER.search(line)]
    return 80 if any(p.fullmatch(line) for line in told for _, p in _PATTERNS) or _engine(head) else 0


def _engine(text: str) -> re.Match[str] | None:
    return _ENGINE.search(text) if _BUILD.search(text) else None


def parse(text: str, context: Context) -> list[Observation]:
    """Observations of the lines; a version that is told twice counts once."""
    emit = Snapshot(context, NAME, REVISION, {})
    told: set[tuple[str, str]] = set()
    for raw in text.splitlines()[: FEW * 10]:
        line = clean(raw).strip()
        for fact, pattern in _PATTERNS:
            found = pattern.fullmatch(line)
            if found and (fact, found[1]) not in told:
                told.add((fact, found[1]))
                emit.add(fact, emit.node, found[1], context.source, line)
    if engine := _engine(text):
        emit.add("node.dcgm.version", emit.node, engine[1], context.source, engine[0].strip())
    return emit.out


FORMAT = DocumentFormat(NAME, "version lines of GPU node software", REVISION, PROVIDES, sniff, parse)
