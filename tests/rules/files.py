"""Rule files for tests of what reads them: one that is right, written so that single lines can be changed."""

from __future__ import annotations

from pathlib import Path

GOOD = """\
id: too-hot
revision: 1
title: {en: The GPU is too hot, zh: GPU 过热}
status: stable
severity: warning
scope: gpu
params:
  limit: {type: int, default: 85, min: 60, max: 100, unit: C}
when:
  fact: gpu.temperature.core
  op: at_least
  value: $limit
action: {bucket: MONITOR}
why:
  en: The core temperature has reached the limit of this site; it is the die's own sensor, not the one of the memory.
  zh: 核心温度已达到本站点的上限；这是芯片自身的传感器，不是显存的传感器。
false_positives: {en: None known., zh: 暂无已知误报。}
references: [https://docs.nvidia.com/deploy/nvml-api/]
tests:
  - {name: hot, given: {facts: [{fact: gpu.temperature.core, value: 90}]}, expect: matched}
  - {name: cool, given: {facts: [{fact: gpu.temperature.core, value: 50}]}, expect: not_matched}
  - {name: nobody looked, given: {facts: [{fact: gpu.temperature.core, status: denied}]}, expect: unknown}
"""


def write(folder: Path, text: str = GOOD, name: str = "too-hot") -> Path:
    """A rule file in `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.yaml"
    path.write_text(text, encoding="utf-8")
    return path


def changed(*swaps: tuple[str, str]) -> str:
    """GOOD with some of its text replaced; each piece must stand in it."""
    text = GOOD
    for old, new in swaps:
        assert old in text, old
        text = text.replace(old, new, 1)
    return text
