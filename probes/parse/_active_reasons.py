"""Why an active test was not run, or was ended: what the collector tells by code and data, in words.

The collector (`probes/collectors/active.py`) is sent to machines and speaks no language; each code here names the data that goes
with it. A document of an earlier version holds an English sentence instead, which is shown as it is.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from knowledge.language import NO_TEXT, Text
from knowledge.text import excerpt

REASONS: Mapping[str, Text] = {
    # nobody can tell whether the GPUs are idle
    "no-smi": Text("nvidia-smi is not installed: nobody can tell whether the GPUs are idle", "未安装 nvidia-smi：无法判断 GPU 是否空闲"),
    "smi-late": Text("nvidia-smi: no answer in {seconds} s", "nvidia-smi 在 {seconds} 秒内没有应答"),
    "smi-not-started": Text("nvidia-smi: {error}", "无法运行 nvidia-smi：{error}"),
    "smi-failed": Text("nvidia-smi ended with {exit}: {said}", "nvidia-smi 以 {exit} 结束：{said}"),
    "no-gpu": Text("nvidia-smi lists no GPU", "nvidia-smi 未列出任何 GPU"),
    "no-such-gpu": Text("nvidia-smi lists no GPU {gpus}", "nvidia-smi 未列出 GPU {gpus}"),
    "gone-blind": Text("the GPUs could not be looked at any more: {because}", "无法再查看 GPU：{because}"),
    # GPUs that are not idle
    "gpu-process": Text("GPU {gpu} is in use by process {pid} ({name})", "GPU {gpu} 正被进程 {pid}（{name}）使用"),
    "gpu-mig": Text("GPU {gpu} is in MIG mode: its instances are given out, and no test of the whole GPU can run",
                    "GPU {gpu} 处于 MIG 模式：其实例已分配，无法对整块 GPU 运行测试"),
    "gpu-untold": Text("GPU {gpu} is not known to be idle: it does not tell its {field} ({said})",
                       "无法确定 GPU {gpu} 是否空闲：它不提供 {field}（{said}）"),
    "gpu-load": Text("GPU {gpu} is in use: {field} is {value} {unit}, idle is at most {limit}",
                     "GPU {gpu} 正在使用：{field} 为 {value} {unit}，空闲时不超过 {limit}"),
    # what ended a test
    "job": Text("a job appeared on the GPUs: process {pid} ({name})", "GPU 上出现了作业：进程 {pid}（{name}）"),
    "late": Text("no end in time", "未在时限内结束"),
    "signal": Text("it was broken off", "已被中断"),
    "orphaned": Text("who asked for it has gone", "发起测试的程序已退出"),
    # what kept one from being started
    "elsewhere": Text("tests run on the machine itself", "测试须在机器本身上运行"),
    "no-test": Text("{program} is none of its tests", "{program} 不是可运行的测试"),
    "no-program": Text("no program was named", "未指定程序"),
    "absent": Text("{program} is not installed", "未安装 {program}"),
    "not-started": Text("cannot be started: {error}", "无法启动：{error}"),
    # said at home
    "exit": Text("{test} ended with exit code {exit}", "{test} 以退出码 {exit} 结束"),
    "exit-said": Text("{test} ended with exit code {exit}: {said}", "{test} 以退出码 {exit} 结束：{said}"),
}  # fmt: skip
LONGEST = 400  # characters of a reason
_DEEP = 3  # reasons within reasons


def spoken(reason: object, deep: int = 0) -> Text:
    """A reason of the collector; an English sentence (of an earlier version) as it is; no text for none."""
    if isinstance(reason, str):
        return Text(excerpt(reason, LONGEST)) if reason else NO_TEXT
    if not isinstance(reason, Mapping) or not reason:
        return NO_TEXT
    code = str(reason.get("code", ""))
    known = REASONS.get(code)
    if known is None or deep > _DEEP:
        return Text(
            f"a reason that is not understood here ({excerpt(code, 40)})",
            f"此版本无法理解的原因（{excerpt(code, 40)}）",
        )
    return Text(*(known.in_(lang).format_map(_Data(reason, lang, deep)) for lang in ("en", "zh")))


class _Data(dict[str, str]):
    """The data of a reason as words; a question mark for what it lacks."""

    def __init__(self, reason: Mapping[str, Any], lang: str, deep: int) -> None:
        super().__init__()
        self._reason, self._lang, self._deep = reason, lang, deep

    def __missing__(self, name: str) -> str:
        value = self._reason.get(name, "?")
        if isinstance(value, Mapping):
            return spoken(value, self._deep + 1).in_(self._lang)
        return excerpt(str(value), 300)
