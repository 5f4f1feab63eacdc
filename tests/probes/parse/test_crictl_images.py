"""The device plugin among containers and images as crictl lists them (shapes of the CRI's JSON; names and ids are made up)."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from knowledge.observation import Observation, Status
from probes.base import Context
from probes.parse.crictl_images import FACT, FORMAT, parse, sniff
from tests.cases import each
from tests.probes.parse.smi_case import one, status, value
from tests.probes.parse.vocabulary_check import faults_of

DIGEST = "sha256:0a1b" + "0" * 60


def container(image: str, asked: str = "", state: str = "CONTAINER_RUNNING") -> dict[str, Any]:
    return {
        "id": "c0ffee", "podSandboxId": "f00d", "metadata": {"name": "nvidia-device-plugin", "attempt": 0},
        "image": {"image": image, "annotations": {}, "userSpecifiedImage": asked}, "imageRef": image, "state": state,
        "labels": {"io.kubernetes.pod.name": "secret-pod"},
    }  # fmt: skip


def ps(*containers: dict[str, Any]) -> str:
    return json.dumps({"containers": list(containers)}, indent=2)


def images(*tags: str) -> str:
    return json.dumps(
        {"images": [{"id": DIGEST, "repoTags": [t], "repoDigests": [], "size": "1"} for t in tags]}, indent=2
    )


def read(text: str) -> list[Observation]:
    found = parse(text, Context("crictl ps", "n1"))
    assert not faults_of(found, FORMAT.provides)
    assert "secret" not in repr(found)
    return found


@each(
    ("text", "expected"),
    [
        (ps(container("nvcr.io/nvidia/k8s-device-plugin:v0.17.1")), "0.17.1"),
        (ps(container(DIGEST, "nvcr.io/nvidia/k8s-device-plugin:v0.16.2-ubi8")), "0.16.2"),
        (ps(container(f"registry.local:5000/mirror/nvidia/k8s-device-plugin:v0.14.5@{DIGEST}")), "0.14.5"),
        (ps(container("nvidia/k8s-device-plugin:1.0.0-beta4")), "1.0.0-beta4"),
        (images("nvcr.io/nvidia/k8s-device-plugin:v0.17.1", "docker.io/library/busybox:1.36"), "0.17.1"),
    ],
)
def test_the_tag_tells_the_release(text: str, expected: str) -> None:
    assert sniff(text) == 90
    assert value(read(text), FACT) == expected


@each(
    ("text", "expected", "said"),
    [
        (ps(container(DIGEST)), Status.UNSUPPORTED, "digest"),
        (ps(container("docker.io/rocm/k8s-device-plugin:1.25.2.7")), Status.UNSUPPORTED, "no image"),
        (ps(container("nvcr.io/nvidia/k8s-device-plugin:v0.17.1", state="CONTAINER_EXITED")), Status.UNSUPPORTED, "no image"),
        (ps(container("nvcr.io/nvidia/k8s-device-plugin:latest")), Status.UNSUPPORTED, "no image"),
        (ps(), Status.UNSUPPORTED, "no image"),
        (images("nvcr.io/nvidia/k8s-device-plugin:v0.17.1", "nvcr.io/nvidia/k8s-device-plugin:v0.16.2"), Status.FAILED, "which one runs"),
        (ps(container("nvcr.io/nvidia/k8s-device-plugin:v0.17.1"))[:80], Status.FAILED, "cut"),
    ],
    ids=["digest", "another vendor's", "ended", "no version", "none", "several images", "cut"],
)  # fmt: skip
def test_what_does_not_tell_it_says_why(text: str, expected: Status, said: str) -> None:
    found = read(text)
    assert status(found, FACT) is expected
    assert said in one(found, FACT).detail


@each("text", ["", "[]", '{"items": []}', '{"containers": []}', "CONTAINER  IMAGE  CREATED\n"])
def test_what_is_something_else(text: str) -> None:
    assert sniff(text) == 0


@given(
    st.recursive(
        st.none() | st.integers() | st.text(max_size=20),
        lambda s: st.lists(s, max_size=3) | st.dictionaries(st.sampled_from(["containers", "images", "image", "repoTags", "state"]), s),
        max_leaves=12,
    )
)  # fmt: skip
def test_no_document_breaks_it(content: Any) -> None:
    assert not faults_of(parse(json.dumps(content), Context("x")), FORMAT.provides)
