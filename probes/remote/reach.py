"""How one machine is reached: which command carries the connection.

The command is an argument vector, made of fixed words and of names that were looked at before: no
name can be an option, and none can mean anything to a shell. ssh hands what it is told to the
login shell of the other side, and the names to the shell of a ProxyCommand; srun and kubectl know
no shell. Host keys are always checked: nothing here, and no setting, accepts an unknown one.
"""

from __future__ import annotations

import re
from enum import StrEnum

from knowledge.record import dataclass

# The far side begins with this. It has no character that any login shell (sh, bash, zsh, csh, fish) reads in single quotes.
BOOTSTRAP = "import sys,zlib;b=sys.stdin.buffer;exec(zlib.decompress(b.read(int(b.readline()))))"
# -I: nothing of the user's environment and folders; -S: no installed packages; -B: no file is written.
FLAGS = ("-I", "-S", "-B", "-X", "utf8", "-c")

_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,252}")
_ADDRESS = re.compile(r"[A-Za-z0-9_:\[][A-Za-z0-9._:%\[\]-]{0,252}")  # a name, IPv4, IPv6 with its zone
_JUMP = re.compile(r"[A-Za-z0-9_\[][A-Za-z0-9._:%@,\[\]-]{0,1000}")  # [user@]host[:port], several with commas between
_CONTEXT = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._:/@-]{0,252}")  # arn:aws:eks:eu-west-1:1234:cluster/name, user@cluster
_PROGRAM = re.compile(r"[A-Za-z0-9_./][A-Za-z0-9_./+-]{0,1000}")
_SELECTOR = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._/=,-]{0,500}")  # app=gpudiag,tier=node
_PATH = re.compile(r"[^-\s\x00-\x1f\x7f%][^\x00-\x1f\x7f%]{0,4000}")  # of a local file; ssh reads % in it


class Via(StrEnum):
    """What carries the connection."""

    SSH = "ssh"
    SLURM = "slurm"  # srun: a step of its own on the node
    KUBERNETES = "kubernetes"  # kubectl exec into a pod of the node


@dataclass(frozen=True, slots=True)
class Reach:
    """One machine and the way to it. ValueError for a name that cannot be one, whoever wrote it.

    Empty words leave the choice to ssh, Slurm or kubectl and their own settings.
    """

    name: str  # what people call it
    via: Via = Via.SSH
    address: str = ""  # for ssh and Slurm, when it is not the name
    user: str = ""  # for ssh
    port: int | None = None  # for ssh
    identity: str = ""  # file of a private key, for ssh
    ssh_config: str = ""  # file, instead of the user's ~/.ssh/config
    jump: str = ""  # [user@]host[:port] on the way, for ssh
    python: str = "python3"  # the interpreter there: a name, or a path
    namespace: str = ""
    pod: str = ""
    container: str = ""
    context: str = ""  # of the kubeconfig
    partition: str = ""  # for Slurm
    account: str = ""  # for Slurm
    connect_timeout: float = 10.0  # seconds until the other side has answered
    sudo: bool = False  # through `sudo -n`, which asks for no password
    job: str = ""  # for Slurm: the id of a job of one's own on the node, whose allocation is used
    selector: str = ""  # for Kubernetes: labels of the pods of which one runs on the node `address`
    root: str = ""  # where the machine's file system is mounted, in a pod: /host

    def __post_init__(self) -> None:
        object.__setattr__(self, "via", Via(self.via))
        looked_at = (
            ("name", _NAME), ("address", _ADDRESS), ("user", _NAME), ("identity", _PATH), ("ssh_config", _PATH), ("jump", _JUMP),
            ("python", _PROGRAM), ("namespace", _NAME), ("pod", _NAME), ("container", _NAME), ("context", _CONTEXT),
            ("partition", _NAME), ("account", _NAME), ("job", _NAME), ("selector", _SELECTOR), ("root", _PATH),
        )  # fmt: skip
        for word, pattern in looked_at:
            value = getattr(self, word)
            if not isinstance(value, str) or ((value or word in ("name", "python")) and not pattern.fullmatch(value)):
                raise ValueError(f"{word} cannot be {value!r}")
        if self.port is not None and not 0 < self.port < 1 << 16:
            raise ValueError(f"port cannot be {self.port}")
        if not 0 < self.connect_timeout <= 600:
            raise ValueError(f"connect_timeout cannot be {self.connect_timeout:g}: more than 0 and at most 600 seconds")
        if self.root and not self.root.startswith("/"):
            raise ValueError(f"root cannot be {self.root!r}: it begins with a slash")

    @property
    def target(self) -> str:
        """The address, or else the name."""
        return self.address or self.name


def argv(reach: Reach) -> list[str]:
    """The command whose standard input and output are the connection. ValueError when `reach` names no pod."""
    there = [*(("sudo", "-n") if reach.sudo else ()), reach.python, *FLAGS]
    if reach.via is Via.SSH:
        return [*_ssh(reach), " ".join([*there, f"'{BOOTSTRAP}'"])]
    return [*(_srun(reach) if reach.via is Via.SLURM else _kubectl(reach)), *there, BOOTSTRAP]


def _ssh(reach: Reach) -> list[str]:
    """OpenSSH (ssh_config(5)): asks nobody, forwards nothing, runs nothing here, notices a line that is dead."""
    options = {
        "BatchMode": "yes", "StrictHostKeyChecking": "yes", "ConnectTimeout": f"{max(1, round(reach.connect_timeout))}",
        "ConnectionAttempts": "1", "ServerAliveInterval": "5", "ServerAliveCountMax": "3", "LogLevel": "ERROR",
        "ClearAllForwardings": "yes", "ForwardAgent": "no", "ForwardX11": "no", "PermitLocalCommand": "no",
        "RemoteCommand": "none", "ControlMaster": "no", "UpdateHostKeys": "no",
    }  # fmt: skip
    out = ["ssh", "-T", "-e", "none"]
    if reach.ssh_config:
        out += ["-F", reach.ssh_config]
    for name, value in options.items():
        out += ["-o", f"{name}={value}"]
    if reach.port is not None:
        out += ["-p", str(reach.port)]
    if reach.user:
        out += ["-l", reach.user]
    if reach.identity:
        out += ["-i", reach.identity, "-o", "IdentitiesOnly=yes"]
    if reach.jump:
        out += ["-J", reach.jump]
    return [*out, "--", reach.target.strip("[]")]


def _srun(reach: Reach) -> list[str]:
    """srun(1): one task on that node, which waits in no queue for longer than the connection may take."""
    out = [
        "srun", f"--nodelist={reach.target}", "--nodes=1", "--ntasks=1", "--unbuffered", "--quit-on-interrupt", "--mpi=none",
        "--chdir=/", "--job-name=gpudiag",
    ]  # fmt: skip
    if reach.job:
        out += [f"--jobid={reach.job}", "--overlap"]
    else:
        out += [f"--immediate={max(1, round(reach.connect_timeout))}"]
    if reach.partition:
        out.append(f"--partition={reach.partition}")
    if reach.account:
        out.append(f"--account={reach.account}")
    return out


def _kubectl(reach: Reach) -> list[str]:
    """kubectl-exec(1): standard input and output of a command in a pod that runs already; no terminal."""
    if not reach.pod:
        raise ValueError(f"{reach.name} names no pod: pod or selector is needed")
    out = [
        *kubectl(reach),
        "exec",
        "--stdin",
        f"--pod-running-timeout={max(1, round(reach.connect_timeout))}s",
        reach.pod,
    ]
    if reach.container:
        out += ["--container", reach.container]
    return [*out, "--"]


def kubectl(reach: Reach) -> list[str]:
    """kubectl with the context and the namespace of `reach`."""
    out = ["kubectl"]
    if reach.context:
        out.append(f"--context={reach.context}")
    if reach.namespace:
        out.append(f"--namespace={reach.namespace}")
    return out


def pods(reach: Reach) -> list[str]:
    """The command that lists the running pods of a node which `reach.selector` fits, as JSON."""
    fields = f"spec.nodeName={reach.target},status.phase=Running"
    return [
        *kubectl(reach), "get", "pods", f"--selector={reach.selector}", f"--field-selector={fields}",
        f"--request-timeout={max(1, round(reach.connect_timeout))}s", "--output=json",
    ]  # fmt: skip
