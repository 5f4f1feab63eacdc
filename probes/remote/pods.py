"""Which pod of a Kubernetes node is entered: the running one that a selector fits."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from dataclasses import replace

from knowledge.language import Text
from probes import _children
from probes.remote import words
from probes.remote.reach import Reach, Via, pods
from probes.remote.sending import child_environment


def found(reach: Reach, patience: float) -> str:
    """The name of the running pod on the node that the selector fits. ConnectError when there is none, or none to be seen."""
    try:
        done = _asked(pods(reach), patience)
    except FileNotFoundError:
        raise words.absent(reach) from None
    except OSError as error:
        raise words.cannot_start(reach, "kubectl", error) from None
    if done.exit_code != 0:
        raise words.explained(reach, done.errors.decode("utf-8", "replace"), "kubectl failed", late=done.timed_out)
    try:
        names = [str(item["metadata"]["name"]) for item in json.loads(done.head + done.tail)["items"]]
    except (ValueError, KeyError, TypeError, RecursionError):
        raise words.refused(
            reach, Text("kubectl get pods answers what is no list of pods", "kubectl get pods 返回的不是 pod 列表")
        ) from None
    if not names:
        raise words.refused(
            reach,
            Text(f"no pod that fits {reach.selector} runs on node {reach.target}", f"节点 {reach.target} 上没有符合 {reach.selector} 的运行中 pod"),
            Text(
                f"kubectl get pods --all-namespaces -o wide --field-selector spec.nodeName={reach.target}",
                f"可查看：kubectl get pods --all-namespaces -o wide --field-selector spec.nodeName={reach.target}",
            ),
        )  # fmt: skip
    name = min(names)
    try:
        replace(reach, pod=name)
    except ValueError as error:
        raise words.refused(reach, Text(str(error))) from None
    return name


def _asked(argv: Sequence[str], deadline: float) -> _children.Outcome:
    program = shutil.which(argv[0])
    if program is None:
        raise FileNotFoundError(argv[0])
    return _children.run(
        program, argv, deadline=deadline, cap=8 << 20, env=child_environment(Via.KUBERNETES), on_start=lambda _: None
    )
