#!/usr/bin/env python3
"""A kubectl of our own, for tests: knows two nodes, plays exec and get pods, and says what kubectl says when it cannot.

The words are those of kubectl 1.31 (k8s.io/kubectl/pkg/cmd/exec, k8s.io/apimachinery/pkg/api/errors), written down by us.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys

PODS = {"gpudiag-a1": ("gpu-12", "Running"), "gpudiag-b2": ("gpu-13", "Running"), "job-9": ("gpu-12", "Succeeded")}


def fail(words: str, code: int = 1) -> None:
    print(words, file=sys.stderr)
    sys.exit(code)


def main(words: list[str]) -> None:
    plain, _, command = "\0".join(words).partition("\0--\0")
    args = plain.split("\0")
    options = dict(w.removeprefix("--").split("=", 1) for w in args if w.startswith("--") and "=" in w)
    names = [w for n, w in enumerate(args) if not w.startswith("-") and args[n - 1] != "--container"]
    if options.get("context") == "gone":
        fail('error: context "gone" does not exist')
    if options.get("namespace") == "down":
        fail("The connection to the server localhost:8080 was refused - did you specify the right host or port?")
    if names[0] == "get":
        node = dict(f.split("=", 1) for f in options["field-selector"].split(","))["spec.nodeName"]
        found = [{"metadata": {"name": p}} for p, (n, phase) in PODS.items() if n == node and phase == "Running"]
        print(json.dumps({"kind": "List", "items": found if options["selector"] == "app=gpudiag" else []}))
        return
    pod = names[1]
    if options.get("namespace") == "closed":
        fail(f'Error from server (Forbidden): pods "{pod}" is forbidden: User "me" cannot create resource "pods/exec" in API group "" '
             'in the namespace "closed"')  # fmt: skip
    if pod not in PODS:
        fail(f'Error from server (NotFound): pods "{pod}" not found')
    if PODS[pod][1] != "Running":
        fail("error: cannot exec into a container in a completed pod; current phase is Succeeded")
    if "--container" in args and args[args.index("--container") + 1] != "main":
        fail("Error from server (BadRequest): container x is not valid for pod " + pod)
    inside = command.split("\0")
    if "/" not in inside[0] and inside[0] != "python3":
        fail('error: Internal error occurred: error executing command in container: exec failed: unable to start container process: '
             f'exec: "{inside[0]}": executable file not found in $PATH: unknown')  # fmt: skip
    inside[0] = sys.executable
    env = {**os.environ, "KUBERNETES_SERVICE_HOST": "10.0.0.1", "HOSTNAME": pod}
    sys.exit(subprocess.run(inside, env=env, check=False).returncode)


if __name__ == "__main__":
    main(sys.argv[1:])
