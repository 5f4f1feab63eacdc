"""A management controller without hardware: OpenIPMI's ``ipmi_sim`` on a port of the loopback, asked by the real ipmitool.

Sensor records are laid out as tables 43-1 and 43-2 of the IPMI 2.0 specification say.
"""

from __future__ import annotations

import socket
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

LAN = """name "sim"
set_working_mc 0x20
  startlan 1
    addr 127.0.0.1 {port}
    priv_limit admin
    allowed_auths_admin none md2 md5 straight
    guid a123456789abcdefa123456789abcdef
  endlan
  user 2 true "root" "test" admin 10 none md2 md5 straight
"""
HEAD = """mc_setbmc 0x20
mc_add 0x20 0 no-device-sdrs 0x23 9 8 0x9f 0x1291 0xf02 persist_sdr
sel_enable 0x20 1000 0x0a
"""
CELSIUS, WATTS, RPM = 1, 6, 18  # base units


def _bytes(command: str, data: Sequence[int]) -> str:
    return f"{command} 0x20 " + " ".join(f"0x{byte:02x}" for byte in data)


def _sensor(number: int, type_: int, code: int) -> list[str]:
    every = " ".join(["1" * 15] * 4)
    return [
        f"sensor_add 0x20 0 {number} {type_} {code}",
        f"sensor_set_event_support 0x20 0 {number} enable scanning per-state {every}",
    ]


def analog(
    number: int, entity: tuple[int, int], type_: int, unit: int, times: int, value: int, low: int, high: int, name: str
) -> list[str]:
    """A sensor whose reading is `value` * `times`, with critical thresholds in the same steps."""
    text = name.encode()
    body = [0x20, 0, number, *entity, 0x7F, 0x68, type_, 1, 0x95, 0x7A, 0x95, 0x7A, 0x3F, 0x3F, 0, unit, 0, 0, times & 0xFF,
            0, 0, 0, 0, 0, 0, 0, 0, 0, 255, 0, 255, high, max(high - 5, 0), 0, low, low, 2, 2, 0, 0, 0, 0xC0 | len(text), *text]  # fmt: skip
    return [
        *_sensor(number, type_, 1),
        f"sensor_set_threshold 0x20 0 {number} settable 111111 255 {high} {high - 5} {low} {low} 0",
        f"sensor_set_value 0x20 0 {number} {value} 0", _bytes("main_sdr_add", [0, 0, 0x51, 1, len(body), *body]),
    ]  # fmt: skip


def discrete(number: int, entity: tuple[int, int], type_: int, code: int, bits: Sequence[int], name: str) -> list[str]:
    """A sensor of states, of which `bits` hold."""
    text = name.encode()
    body = [0x20, 0, number, *entity, 0x67, 0x40, type_, code, 0xFF, 0x7F, 0xFF, 0x7F, 0xFF, 0x7F, 0xC0, 0, 0, 1, 0, 0, 0, 0, 0, 0,
            0, 0xC0 | len(text), *text]  # fmt: skip
    return [
        *_sensor(number, type_, code), *(f"sensor_set_bit 0x20 0 {number} {bit} 1 0" for bit in bits),
        _bytes("main_sdr_add", [0, 0, 0x51, 2, len(body), *body]),
    ]  # fmt: skip


def logged(at: int, type_: int, number: int, code: int, offset: int) -> str:
    """An entry of the event log; `code` with bit 7 is a deassertion. `at` is in seconds since 1970."""
    when = [at >> shift & 0xFF for shift in (0, 8, 16, 24)]
    return _bytes("sel_add", [2, *when, 0x20, 0, 4, type_, number, code, offset, 0xFF, 0xFF])


@contextmanager
def controller(folder: Path, lines: Sequence[str]) -> Iterator[list[str]]:
    """Runs it; gives the words ahead of an ipmitool command that reach it."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    (folder / "lan.conf").write_text(LAN.format(port=port))
    (folder / "sim.emu").write_text(HEAD + "\n".join([*lines, "mc_enable 0x20", ""]))
    (folder / "state").mkdir()
    argv = [
        "ipmi_sim",
        "-c",
        str(folder / "lan.conf"),
        "-f",
        str(folder / "sim.emu"),
        "-n",
        "-s",
        str(folder / "state"),
    ]
    with subprocess.Popen(
        argv, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as running:
        try:
            words = ["ipmitool", "-I", "lan", "-H", "127.0.0.1", "-p", str(port), "-U", "root", "-P", "test"]
            _wait(words)
            yield words
        finally:
            running.kill()


def _wait(words: Sequence[str]) -> None:
    for _ in range(40):
        asked = subprocess.run(
            [*words, "-R", "1", "-N", "1", "mc", "info"], capture_output=True, check=False, timeout=30
        )
        if not asked.returncode:
            return
        time.sleep(0.1)
    raise TimeoutError("ipmi_sim does not answer")
