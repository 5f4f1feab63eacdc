"""Why a machine cannot be reached, in words that an operator acts on, from what ssh, srun or kubectl said."""

from __future__ import annotations

import re

from knowledge.text import clean, excerpt
from probes.remote import ConnectError
from probes.remote.reach import Reach, Via

# What is looked for in what was said (one line above each pattern as it is printed), what it means, what to do about it.
_SSH = (
    # @    WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED!     @
    # Host key for [127.0.0.1]:2222 has changed and you have requested strict checking.
    (r"REMOTE HOST IDENTIFICATION HAS CHANGED|Host key for .* has changed",
     "the host key of {target} is not the one that is known: it was installed anew, or something else answers in its place",
     "ask who runs the machine; if it was installed anew: ssh-keygen -R {known}, then add the new key after comparing its fingerprint"),
    # Host key for 10.0.0.1 was revoked and you have requested strict checking.
    (r"was revoked|REVOKED HOST KEY", "the host key of {target} is revoked", "it must not be trusted: ask who runs the machine"),
    # No ED25519 host key is known for 127.0.0.1 and you have requested strict checking.
    # Host key verification failed.
    (r"host key is known for|Host key verification failed",
     "the host key of {target} is not known here, and unknown keys are never accepted",
     "log in once with ssh and compare the fingerprint, or have the key put into /etc/ssh/ssh_known_hosts"),
    # ssh: Could not resolve hostname gpu-99: Name or service not known
    (r"Could not resolve hostname", "{target} has no address: its name is not known here",
     "mend the name, or give the address: address = \"...\" in the inventory"),
    # ssh: connect to host 10.0.0.1 port 22: Connection refused
    (r"Connection refused", "{target} refuses connections: no ssh server listens there", "is sshd running, and is the port right?"),
    # ssh: connect to host 10.0.0.1 port 22: Connection timed out
    # Connection timed out during banner exchange
    (r"timed out", "{target} did not answer in {timeout:g} s", "is the machine up, and does a firewall let ssh through?"),
    # ssh: connect to host 10.0.0.1 port 22: No route to host
    (r"No route to host|Network is unreachable", "there is no way to {target}: {line}", "is the machine up, and the network between?"),
    # root@10.0.0.1: Permission denied (publickey,password).
    (r"Permission denied \(|Too many authentication failures|Authentication failed",
     "{target} does not let this user in: {line}",
     "a key that needs no password is wanted: ssh-add, or identity = \"...\" and user = \"...\" in the inventory"),
    # This account is currently not available.
    (r"account is currently not available|nologin", "this user may not run commands on {target}", "name another: user = \"...\""),
    # Connection closed by 10.0.0.1 port 22
    # kex_exchange_identification: read: Connection reset by peer
    # Connection closed by UNKNOWN port 65535
    (r"Connection closed by|Connection reset|kex_exchange_identification",
     "{target} closed the connection before anybody could log in: {line}", "its sshd may be overloaded, or may not want this address"),
    # Bad owner or permissions on /root/.ssh/config
    (r"Bad owner or permissions|Bad configuration option|Can't open user config file", "ssh cannot use its settings: {line}", "mend that file"),
    # Unable to negotiate with 10.0.0.1 port 22: no matching host key type found. Their offer: ssh-rsa
    (r"Unable to negotiate", "ssh here and on {target} have no method in common: {line}", "allow it for this host in ~/.ssh/config"),
)  # fmt: skip
_SLURM = (
    # srun: error: Unable to allocate resources: Invalid node name specified
    (r"Invalid node name", "Slurm knows no node {target}", "sinfo -N lists the nodes"),
    # srun: error: Unable to allocate resources: Requested node configuration is not available
    (r"node configuration is not available|[Rr]equired node not available|Nodes required for job are DOWN",
     "Slurm does not give {target} out: {line}", "sinfo -R says why: it may be down or drained; use ssh, or partition = \"...\""),
    # srun: error: Unable to allocate resources: Immediate allocation impossible, insufficient resources
    # srun: Unable to allocate resources: ... Connection timed out ... / job allocation expired
    (r"Immediate allocation|insufficient priority|Requested nodes are busy|Job allocation .* has been revoked",
     "{target} is busy: Slurm could give nothing of it out within {timeout:g} s",
     "name a job of yours that runs there (job = \"...\"), or use ssh"),
    # srun: error: Unable to allocate resources: Invalid partition name specified
    (r"[Ii]nvalid partition|[Ii]nvalid account|account/partition combination", "Slurm does not accept the partition or the account: {line}",
     "sinfo -s lists partitions, sacctmgr show assoc user=$USER the accounts"),
    # srun: error: Unable to allocate resources: Unable to contact slurm controller (connect failure)
    (r"[Uu]nable to contact slurm controller|fetch_config|configuration source|Unable to process configuration",
     "Slurm cannot be asked from here: {line}", "is this a login node, and is slurmctld running?"),
    # srun: error: Task launch for StepId=1.0 failed on node gpu01: Communication connection failure
    (r"Task launch .* failed|Communication connection failure|Application launch failed",
     "Slurm could start nothing on {target}: {line}", "is slurmd running there? scontrol show node {target}"),
    # srun: error: Unable to create step for job 12: Invalid job id specified
    (r"Invalid job id|already completing or completed", "Slurm does not take the job: {line}", "squeue -w {target} lists the jobs there"),
    # slurmstepd: error: execve(): python3: No such file or directory
    (r"execve\(\).*No such file", "there is no {python} on {target}", "name one that is there: python = \"/usr/bin/python3.9\""),
)  # fmt: skip
_KUBERNETES = (
    # ... exec failed: unable to start container process: exec: "python3": executable file not found in $PATH: unknown
    (r"executable file not found|no such file or directory", "there is no {python} in the pod on {target}", "the image needs a Python 3: another pod, or python = \"...\""),
    # Error from server (NotFound): pods "gpudiag-x" not found
    (r"NotFound", "Kubernetes knows no such thing: {line}", "kubectl get pods -o wide --all-namespaces lists the pods and their nodes"),
    # Error from server (Forbidden): pods "x" is forbidden: User "me" cannot create resource "pods/exec" in API group "" ...
    (r"Forbidden|forbidden", "Kubernetes does not allow it: {line}", "the role needs get on pods and create on pods/exec"),
    # error: You must be logged in to the server (Unauthorized)
    (r"Unauthorized|must be logged in|getting credentials", "Kubernetes does not know who asks: {line}", "log in again, as for any kubectl command"),
    # error: unable to upgrade connection: container not found ("main")
    # Error from server (BadRequest): container x is not valid for pod y
    (r"container not found|container \S+ is not valid|container \S+ not found", "the pod has no such running container: {line}", "container = \"...\" names one"),
    # error: cannot exec into a container in a completed pod; current phase is Succeeded
    # error: pod x does not have a host assigned
    # error: timed out waiting for the condition  (--pod-running-timeout)
    (r"completed pod|does not have a host assigned|is not running|waiting for the condition|current phase", "the pod does not run: {line}",
     "kubectl get pod {pod} says what keeps it"),
    # error: context "x" does not exist
    (r"context .* does not exist|no context exists|cluster .* does not exist", "kubectl has no such context: {line}", "kubectl config get-contexts lists them"),
    # The connection to the server localhost:8080 was refused - did you specify the right host or port?
    # Unable to connect to the server: dial tcp: lookup x: no such host
    (r"connection to the server|Unable to connect to the server|no configuration has been provided|i/o timeout", "the API server cannot be reached: {line}",
     "kubectl cluster-info shows what kubectl makes of its settings"),
)  # fmt: skip
_ANY = (
    # sudo: a password is required
    (r"sudo: .*(password is required|terminal is required|not in the sudoers|may not run)", "sudo on {target} wants a password: {line}",
     "allow it in sudoers without one (NOPASSWD), or leave sudo out: what needs root is then said to be denied"),
    # bash: line 1: python3: command not found
    # sh: 1: exec: python3: not found
    # python3: Command not found.   (csh)
    (r"command not found|Command not found|: not found|No such file or directory|Unknown command", "there is no {python} on {target}",
     "name one that is there: python = \"/usr/bin/python3.9\" in the inventory (RHEL 8: /usr/libexec/platform-python)"),
    # Unknown option: -I        (Python 2)
    (r"Unknown option: -I|SyntaxError|has no attribute 'buffer'", "{python} on {target} is too old", "3.6 or newer is needed: python = \"...\" names another"),
    # -I -S -B -X utf8 -c import sys,zlib;...       (a program that prints what it was given)
    (r"-I -S -B -X utf8 -c", "{python} on {target} is no Python", "python = \"...\" names another interpreter"),
    # ModuleNotFoundError: No module named 'zlib'
    (r"No module named", "{python} on {target} lacks a part of its standard library: {line}", "python = \"...\" names another interpreter"),
    # -rbash: /usr/bin/python3: restricted: cannot specify `/' in command names
    (r"restricted", "this user may not run commands on {target}: {line}", "name another: user = \"...\""),
)  # fmt: skip
_TABLES = {Via.SSH: _SSH, Via.SLURM: _SLURM, Via.KUBERNETES: _KUBERNETES}
PROGRAMS = {Via.SSH: "ssh", Via.SLURM: "srun", Via.KUBERNETES: "kubectl"}


def explained(reach: Reach, said: str, ended: str, *, late: bool = False) -> ConnectError:
    """The error for a line that never began: `said` is what was printed, `ended` how it ended, `late` that it took too long."""
    text = clean(said)[:32768]
    words = {
        "target": reach.target, "python": reach.python, "pod": reach.pod or "POD", "timeout": reach.connect_timeout,
        "known": f"'[{reach.target}]:{reach.port}'" if reach.port not in (None, 22) else reach.target,
    }  # fmt: skip
    for pattern, message, hint in (*_TABLES[reach.via], *_ANY):
        for line in text.splitlines():
            if re.search(pattern, line):
                told = {**words, "line": excerpt(line, 240)}
                return ConnectError(f"{reach.name}: {message.format(**told)}", hint=hint.format(**words))
    last = next((excerpt(line, 240) for line in reversed(text.splitlines()) if line.strip()), "")
    if late:
        why = f"no answer in {reach.connect_timeout:g} s"
        hint = (
            "is the machine overloaded, or waits something there for an answer? connect_timeout = ... gives it longer"
        )
        return ConnectError(f"{reach.name}: {why}{last and f' ({last})'}", hint=hint)
    hint = f"try the connection by hand: {PROGRAMS[reach.via]} to {reach.target}"
    more = f" ({last})" if last and last not in ended else ""
    return ConnectError(f"{reach.name}: no connection: {ended}{more}", hint=hint)


def absent(reach: Reach) -> ConnectError:
    """The error for a machine of ours that lacks ssh, srun or kubectl."""
    program = PROGRAMS[reach.via]
    return ConnectError(
        f"{reach.name}: {program} is not installed here", hint=f"install {program}, or reach it another way: via = ..."
    )
