"""py-spy: where it is, and what it means when it fails."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path

from knowledge.language import Text
from knowledge.observation import Status
from knowledge.text import excerpt
from probes.capture.model import Refusal

_TRUST = Text("run as root or as the user of the process; in a container add CAP_SYS_PTRACE; kernel.yama.ptrace_scope must be 0 or 1",
              "请以 root 或该进程的用户运行；容器内需加 CAP_SYS_PTRACE；kernel.yama.ptrace_scope 须为 0 或 1")  # fmt: skip


def program() -> str | None:
    """Path of py-spy: beside this interpreter, where installing us put it, else on the PATH; None when there is none."""
    beside = Path(sys.executable).with_name("py-spy")
    return str(beside) if os.access(beside, os.X_OK) else shutil.which("py-spy")


@cache
def version(path: str) -> str:
    """ "py-spy 0.4.3"; "py-spy" when it does not say."""
    try:
        done = subprocess.run(
            [path, "--version"], capture_output=True, timeout=5, check=False, stdin=subprocess.DEVNULL
        )
    except (OSError, subprocess.TimeoutExpired):
        return "py-spy"
    return excerpt(done.stdout.decode("utf-8", "replace"), 60) or "py-spy"


# Error: Failed to get process executable name. Check that the process is running.
# Permission Denied: Try running again with elevated permissions by going 'sudo env "PATH=$PATH" !!'
# Error: Failed to find python version from target process
# Error: Unsupported version of Python: 3.15.0
# Error: Failed to get a python interpreter in the process
_SIGNS = (
    ("no-permission", r"permission denied|operation not permitted|EPERM"),
    ("ended", r"check that the process is running|no such process|no such file or directory|process exited|ESRCH"),
    ("unsupported-version", r"unsupported version of python"),
    ("not-python", r"failed to find python version"),
    ("no-symbols", r"python interpreter|\.data section|\.bss|symbol|_PyRuntime"),
)


def code_of(errors: str, pid: int) -> str:
    """What kind of failure py-spy's messages tell: a key of `why`."""
    head = errors.partition("Stack backtrace")[0]
    code = next((c for c, pattern in _SIGNS if re.search(pattern, head, re.IGNORECASE)), "failed")
    if code == "not-python" and _runs_python(pid):
        return "no-symbols"  # an interpreter is there, and nothing in it that py-spy knows
    if code != "ended" and not Path(f"/proc/{pid}").exists():
        return "ended"
    return code


def _runs_python(pid: int) -> bool:
    try:
        with Path(f"/proc/{pid}/maps").open("rb") as file:
            return re.search(rb"/(lib)?python[23][\d.]*t?(\.so[\d.]*)?\n", file.read(4 << 20)) is not None
    except OSError:
        return False


def message(errors: str) -> str:
    """The first sentence of py-spy's own words."""
    lines = [line for line in errors.partition("Stack backtrace")[0].splitlines() if line.strip()]
    said = next((line for line in lines if line.startswith(("Error", "Permission"))), lines[0] if lines else "")
    return excerpt(said.removeprefix("Error: "), 200)


def why(code: str, detail: str = "") -> Refusal:
    """The sentence for a kind of failure; `detail`: py-spy's own words where we have none."""
    match code:
        case "pyspy-missing":
            return Refusal(
                code, Text("py-spy is not installed", "未安装 py-spy"), Text("pip install py-spy", "pip install py-spy")
            )
        case "no-permission":
            return Refusal(
                code, Text("no permission to read the memory of the process", "没有读取该进程内存的权限"), _TRUST
            )
        case "ended":
            return Refusal(code, Text("the process has ended", "进程已结束"))
        case "not-python":
            return Refusal(code, Text("the process runs no Python interpreter", "该进程未运行 Python 解释器"))
        case "no-symbols":
            return Refusal(
                code,
                Text("py-spy does not find the interpreter in the process: a stripped or an unusual build of Python", "py-spy 在进程中找不到解释器：Python 被裁剪符号或为非常规构建"),
                Text("use a Python with its symbols", "请使用保留符号的 Python"),
            )  # fmt: skip
        case "unsupported-version":
            return Refusal(code, Text("py-spy does not know this version of Python", "py-spy 不支持该 Python 版本"),
                           Text("pip install --upgrade py-spy", "pip install --upgrade py-spy"))  # fmt: skip
        case "nothing-sampled":
            return Refusal(code, Text("py-spy took no sample", "py-spy 未采到任何样本"))
        case "timeout":
            return Refusal(code, Text("py-spy did not answer in time", "py-spy 未在限时内应答"))
    tail = f": {detail}" if detail else ""
    return Refusal(code, Text(f"py-spy failed{tail}", f"py-spy 失败{tail}"))


def status(code: str) -> Status:
    """How an observation says that there are no stacks."""
    return {
        "no-permission": Status.DENIED,
        "timeout": Status.TIMEOUT,
        "not-python": Status.UNSUPPORTED,
        "no-symbols": Status.UNSUPPORTED,
        "unsupported-version": Status.UNSUPPORTED,
        "pyspy-missing": Status.UNSUPPORTED,
    }.get(code, Status.FAILED)
