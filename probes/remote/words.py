"""Why a machine cannot be reached, in words that an operator acts on, from what ssh, srun or kubectl said; in both languages."""

from __future__ import annotations

import re

from knowledge.language import Text
from knowledge.text import clean, excerpt
from probes.remote import ConnectError
from probes.remote.reach import Reach, Via
from probes.remote.reasons import ALONE, ANY, KUBERNETES, SLURM, SSH

_TABLES = {Via.SSH: SSH, Via.SLURM: SLURM, Via.KUBERNETES: KUBERNETES}
PROGRAMS = {Via.SSH: "ssh", Via.SLURM: "srun", Via.KUBERNETES: "kubectl"}
# How a line ends, as `probes.remote.line` says it; what stands behind it is quoted as it was printed.
_ENDED = (
    (r"the time for looking at it, (\S+) s, was spent", r"查看时限 \1 秒已用完"),
    (r"it prints without end before it answers", "它在应答之前不断输出"),
    (r"what it says makes no sense", "收到的内容无法理解"),
    (r"something else answers there", "应答的是其他程序"),
    (r"it has no version that can be one", "其版本号无效"),
    (r"it has no clock, or no user, that can be one", "其时钟或用户无效"),
    (r"it was closed there", "对方关闭了连接"),
    (r"it was closed", "连接已关闭"),
    (r"it was ended", "连接已被结束"),
    (r"it was never made", "从未建立连接"),
    (r"no answer in (\S+) s", r"\1 秒内没有应答"),
    (r"(ssh|srun|kubectl|\S+) ended with exit code (-?\d+)", r"\1 以退出码 \2 结束"),
    (r"kubectl failed", "kubectl 执行失败"),
)


def explained(reach: Reach, said: str, ended: str, *, late: bool = False) -> ConnectError:
    """The error for a line that never began: `said` is what was printed, `ended` how it ended, `late` that it took too long."""
    text = clean(said)[:32768]
    words = {
        "target": reach.target, "python": reach.python, "pod": reach.pod or "POD", "timeout": reach.connect_timeout,
        "known": f"'[{reach.target}]:{reach.port}'" if reach.port not in (None, 22) else reach.target,
    }  # fmt: skip
    lines = [line for line in text.splitlines() if line.strip()]
    for pattern, message, hint in (*_TABLES[reach.via], *ANY, *(ALONE if len(lines) == 1 else ())):
        for line in lines:
            if re.search(pattern, line):
                told = {**words, "line": excerpt(line, 240)}
                return refused(reach, _filled(message, told), _filled(hint, words))
    last = excerpt(lines[-1], 240) if lines else ""
    if late:
        why = f"no answer in {reach.connect_timeout:g} s"
        message = _with(Text(why, in_chinese(why)), last)
        return refused(reach, message, Text(
            "is the machine overloaded, or waits something there for an answer? connect_timeout = ... gives it longer",
            "机器是否过载，或有程序在等待输入？可用 connect_timeout = ... 放宽时限",
        ))  # fmt: skip
    more = last if last not in ended else ""
    message = _with(Text(f"no connection: {ended}", f"无法连接：{in_chinese(ended)}"), more)
    program = PROGRAMS[reach.via]
    return refused(reach, message, Text(
        f"try the connection by hand: {program} to {reach.target}", f"请手动尝试连接：{program} 到 {reach.target}"
    ))  # fmt: skip


def absent(reach: Reach) -> ConnectError:
    """The error for a machine of ours that lacks ssh, srun or kubectl."""
    program = PROGRAMS[reach.via]
    return refused(
        reach, Text(f"{program} is not installed here", f"本机未安装 {program}"),
        Text(f"install {program}, or reach it another way: via = ...", f"请安装 {program}，或换一种连接方式：via = ..."),
    )  # fmt: skip


def refused(reach: Reach, why: Text, hint: Text | None = None) -> ConnectError:
    """The error for a machine that is not reached for a reason known here."""
    return ConnectError(Text(f"{reach.name}: {why.en}", f"{reach.name}：{why.in_('zh')}"), hint=hint)


def cannot_start(reach: Reach, program: str, error: Exception) -> ConnectError:
    """The error for a program of this machine that the system does not start."""
    return refused(reach, Text(f"{program} cannot be started: {error}", f"无法启动 {program}：{error}"))


def broke(name: str, why: str) -> Text:
    """That a line ended before its time, as `probes.remote.line` says why."""
    return Text(f"the connection to {name} broke: {why}", f"与 {name} 的连接中断：{in_chinese(why)}")


def in_chinese(why: str) -> str:
    """How a line ended; what is not known stays as it was said."""
    for pattern, said in _ENDED:
        if found := re.match(pattern, why):
            rest = why[found.end() :]
            return found.expand(said) + (f"：{rest[2:]}" if rest.startswith(": ") else rest)
    return why


def _filled(text: Text, words: dict[str, object]) -> Text:
    return Text(text.en.format(**words), text.zh.format(**words))


def _with(text: Text, last: str) -> Text:
    """With the last line that was printed."""
    return Text(f"{text.en} ({last})", f"{text.zh}（{last}）") if last else text
