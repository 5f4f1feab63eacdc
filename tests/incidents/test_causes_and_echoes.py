"""What a program saw of a sick GPU stands under the GPU's own message, from the text of both logs to the roles."""

from __future__ import annotations

from pathlib import Path

import pytest

from assistant.diagnosis import Diagnosis, diagnose
from assistant.sources import read
from rules.engine import Role
from rules.loader import load
from tests.cases import each

NVLINK = "CUDA error: uncorrectable NVLink error detected during the execution"
CONTAINED = "CUDA error: Invalid access of peer GPU memory over nvlink or a hardware error"


def judge(folder: Path, kernel: list[str], *program: str) -> Diagnosis:
    """Both logs of host n1, the program's lines a second after the kernel's."""
    log = folder / "kern.log"
    log.write_text("".join(f"2026-03-03T04:05:06.00{i}+00:00 n1 kernel: {k}\n" for i, k in enumerate(kernel)))
    given = [str(log)]
    if program:
        app = folder / "train.log"
        app.write_text("".join(f"2026-03-03T04:05:07.000+00:00 n1 train[99]: {line}\n" for line in program))
        given.append(str(app))
    reading = read([], given)
    return diagnose(reading.observations, load())


def xid(code: int, text: str) -> str:
    return f"NVRM: Xid (PCI:0000:3b:00): {code}, {text}"


NVLINK5 = "pid=1, name=python3, {unit} Nonfatal XC0 i0 Link 03 (0x00000000 0x00000000 0x00000000 0x00000000 0x00000000)"


@each(
    ("kernel", "said", "effect"),
    [
        (xid(74, "pid='<unknown>', name=<unknown>, NVLink: fatal error detected on link 1(0x0, 0x1, 0x0, 0x0, 0x0, 0x0, 0x0)"),
         NVLINK, "cuda-nvlink-error"),
        *[(xid(code, NVLINK5.format(unit=unit)), NVLINK, "cuda-nvlink-error")
          for code, unit in ((144, "SAW_MVB"), (145, "RLW_CTRL"), (146, "TLW_RX"), (147, "TREX"), (148, "NVLPW_CTRL"),
                             (149, "NETIR_LINK_EVT"), (150, "MSE_WATCHDOG"))],
        (xid(74, "pid='<unknown>', name=<unknown>, NVLink: fatal error detected on link 1(0x0, 0x1, 0x0, 0x0, 0x0, 0x0, 0x0)"),
         CONTAINED, "cuda-contained-error"),
        (xid(94, "pid=99, name=python3, Contained: SM (0x1). RST: No, D-RST: No"), CONTAINED, "cuda-contained-error"),
        (xid(95, "pid=99, name=python3, Uncontained: FBHUB. RST: Yes, D-RST: No"), CONTAINED, "cuda-contained-error"),
    ],
)  # fmt: skip
def test_the_error_of_cuda_is_a_symptom_of_the_xid(tmp_path: Path, kernel: str, said: str, effect: str) -> None:
    d = judge(tmp_path, [kernel], f"RuntimeError: {said}")
    found = {f.rule.id: f for f in d.findings}
    assert found[effect].role is Role.SYMPTOM
    assert d.roots[0].rule.id.startswith(("nvlink", "contained", "uncontained"))


BAR = "NVRM: This PCI I/O region assigned to your NVIDIA device is invalid:"
CORRECTED = "pcieport 0000:3a:00.0: AER: Corrected error message received from 0000:3b:00.0"


@pytest.mark.parametrize(
    ("kernel", "effect"),
    [
        ([xid(79, "pid=99, GPU has fallen off the bus."), BAR], "gpu-bar-not-assigned"),
        ([xid(143, "Error status 0x65 while polling for FSP boot complete, 0xffffffff, 0x0, 0x0, 0x0, 0x0"), BAR],
         "gpu-bar-not-assigned"),
        ([xid(79, "pid=99, GPU has fallen off the bus."), CORRECTED], "pcie-aer-corrected-single"),
    ],
)  # fmt: skip
def test_what_the_kernel_says_after_a_lost_gpu_is_its_echo(tmp_path: Path, kernel: list[str], effect: str) -> None:
    d = judge(tmp_path, kernel)
    found = {f.rule.id: f for f in d.findings}
    assert found[effect].role is Role.SYMPTOM
