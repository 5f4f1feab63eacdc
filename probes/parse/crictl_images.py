"""``crictl ps -o json`` and ``crictl images -o json``: which release of NVIDIA's device plugin runs, or lies, on the node.

Of all containers and images only those of the device plugin are looked at, and only their tag is kept. The runtime often names
the image of a container by its digest alone; a kubelet of 1.29 or later leaves the name that was asked for beside it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from knowledge.lazy import lazy
from knowledge.observation import Observation, Status
from knowledge.text import clean
from probes.base import Context, DocumentFormat
from probes.parse._host_snapshot import Snapshot, mapping, mappings, words
from probes.parse._json import loaded
from probes.parse._smi_values import Reading

NAME, REVISION, FACT = "crictl-images", 1, "node.device_plugin.version"
# nvcr.io/nvidia/k8s-device-plugin:v0.17.1     registry.local:5000/mirror/nvidia/k8s-device-plugin:v0.14.5-ubi8@sha256:...
# (rocm/k8s-device-plugin and projecthami/k8s-vgpu are other programs)
_IMAGE = lazy(
    r"(?:\S{1,200}/)?nvidia/k8s-device-plugin:v?(\d{1,3}\.\d{1,3}(?:\.\d{1,3})?(?:-(?:rc|beta)\.?\d{0,3})?)\S{0,120}"
)


def sniff(head: str) -> int:
    """90 for either list as crictl prints it."""
    start = head.lstrip("\ufeff \n\t")[:200]
    if not start.startswith("{"):
        return 0
    ours = ('"podSandboxId"' in head and '"containers"' in start) or ('"repoTags"' in head and '"images"' in start)
    return 90 if ours else 0


def parse(text: str, context: Context) -> list[Observation]:
    """The version of the device plugin, or why these lists do not tell it."""
    emit = Snapshot(context, NAME, REVISION, {})
    try:
        document = mapping(loaded(text))
    except (ValueError, RecursionError):
        if not text.lstrip("\ufeff \n\t").startswith("{"):
            return []  # what went wrong, in words: the caller knows better what it means
        emit.add(FACT, emit.node, Reading(None, Status.FAILED, "the document is cut or is no JSON"), emit.name)
        return emit.out
    running = "containers" in document
    named = list(_containers(document) if running else _images(document))
    found = {m[1]: name for name in named for m in [_IMAGE.fullmatch(name)] if m}
    if len(found) == 1:
        [(version, name)] = found.items()
        emit.add(FACT, emit.node, version, emit.name, name)
    else:
        emit.add(FACT, emit.node, _why(sorted(found), named, running), emit.name, ", ".join(found.values()))
    return emit.out


def _containers(document: Mapping[str, Any]) -> Iterator[str]:
    """Names of the images of running containers, and of their containers where an image has only a digest."""
    for container in mappings(document.get("containers")):
        image = mapping(container.get("image"))
        state = container.get("state")
        if isinstance(state, str) and state != "CONTAINER_RUNNING":
            continue
        for name in (image.get("userSpecifiedImage"), image.get("image"), container.get("imageRef")):
            if isinstance(name, str) and name:
                yield clean(name)


def _images(document: Mapping[str, Any]) -> Iterator[str]:
    for image in mappings(document.get("images")):
        yield from (clean(tag) for tag in words(image.get("repoTags")))


def _why(versions: list[str], named: list[str], running: bool) -> Reading:
    if versions:
        several = f"several releases of the device plugin are there: {', '.join(versions)}"
        return Reading(None, Status.FAILED, several if running else f"{several}; which one runs is not told")
    if running and any(name.startswith("sha256:") for name in named):
        return Reading(None, Status.UNSUPPORTED, "the runtime names images by their digest only")
    return Reading(None, Status.UNSUPPORTED, "no image of NVIDIA's device plugin is in this list")


FORMAT = DocumentFormat(NAME, "crictl ps or images (JSON)", REVISION, (FACT,), sniff, parse)
