"""Pseudonyms: no name is left, the same name is always the same, and the diagnosis stays."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from probes.bundle import write
from probes.host import CallKind, ReplayHost, Reply
from probes.live import kernel_log
from probes.planted import planted
from probes.redact import Redactor, redacted
from probes.redact_check import left
from probes.runner import run

KEY = b"0123456789abcdef"
LOG = """\
2026-03-03T12:00:00+0000 ash-gpu-17.corp.example.com kernel: usb 1-1: new device, MAC 0c:42:a1:7b:22:9e
2026-03-03T12:00:01+0000 ash-gpu-17.corp.example.com kernel: NVRM: Xid (PCI:0000:3b:00): 79, pid=4242, name=train.py, GPU has fallen off the bus.
2026-03-03T12:00:02+0000 ash-gpu-17.corp.example.com kernel: NVRM: GPU 0000:3b:00.0: GPU-4c9a8d5e-1b2c-3d4e-5f60-718293a4b5c6 serial number : 1650522003820
2026-03-03T12:00:03+0000 ash-gpu-17.corp.example.com systemd[1]: job of /home/alice.w/run.sh from 10.20.30.40 (ash-gpu-17) version 535.183.01, VBIOS 96.00.74.00.01
"""
SECRETS = ("ash-gpu-17", "corp.example.com", "0c:42:a1:7b:22:9e", "4c9a8d5e", "1650522003820", "alice.w", "10.20.30.40")


def text_of(text: str, host: str = "ash-gpu-17.corp.example.com") -> str:
    redactor = Redactor(KEY)
    redactor.learn([text], host)
    return redactor.text(text)


def test_names_go_and_what_a_diagnosis_needs_stays() -> None:
    out = text_of(LOG)
    for secret in SECRETS:
        assert secret not in out, secret
    for kept in (
        "0000:3b:00",
        ": 79,",
        "pid=4242",
        "train.py",
        "535.183.01",
        "96.00.74.00.01",
        "12:00:01+0000",
        "usb 1-1",
    ):
        assert kept in out, kept
    assert len(out.splitlines()) == len(LOG.splitlines())


def test_one_name_has_one_pseudonym_and_keys_differ() -> None:
    out = text_of(LOG)
    assert len(set(re.findall(r"^\S+ (\S+) ", out, re.MULTILINE))) == 1
    assert text_of(LOG) == out
    other = Redactor(b"another key of some length")
    other.learn([LOG])
    assert other.text(LOG) != out


def test_a_redacted_recording_tells_the_same_faults() -> None:
    reply = Reply(
        CallKind.COMMAND,
        kernel_log.COMMANDS[0] if hasattr(kernel_log, "COMMANDS") else ("dmesg",),
        data=LOG.encode(),
        exit_code=0,
    )
    host, replies, _, names = redacted("ash-gpu-17.corp.example.com", [reply], KEY)
    assert len(names) >= 6
    assert host.startswith("node-")
    assert replies[0].data.count(b"\n") == LOG.count("\n")
    spec = kernel_log.PROBE
    plain = run(ReplayHost("ash-gpu-17.corp.example.com", [reply]), [spec])[0].observations
    hidden = run(ReplayHost(host, replies), [spec])[0].observations
    assert [(o.fact, o.status, o.at) for o in plain] == [(o.fact, o.status, o.at) for o in hidden]
    assert not any(secret in repr(hidden) for secret in SECRETS)


def test_arguments_of_programs_lose_their_values() -> None:
    data = b'{"schema": "gpudiag/processes/1", "all": [{"cmdline": ["/usr/bin/python3", "/data/secretproject/train.py", "--lr=0.1", "swordfish"]}]}'
    _, (out,), _, _ = redacted("n1", [Reply(CallKind.SNAPSHOT, ("processes",), data=data)], KEY)
    assert b"swordfish" not in out.data
    assert b"secretproject" not in out.data
    assert b"train.py" in out.data
    assert b"--lr=..." in out.data


def test_shapes() -> None:
    out = text_of(
        "MAC b8:59:9f:aa:bb:cc GUID 506b:4b03:00fc:1234 0x506b4b0300fc1234 fe80::1:2:3 127.0.0.1 me@corp.example.com 0.0.0.0 1.2.3.4.5",
        "",
    )
    assert "127.0.0.1" in out
    assert "0.0.0.0" in out
    assert "1.2.3.4.5" in out, "a version of five parts is no address"
    for secret in ("b8:59", "506b", "fe80", "me@corp"):
        assert secret not in out
    assert re.search(r"MAC 02(:[0-9a-f]{2}){5} GUID [0-9a-f]{4}(:[0-9a-f]{4}){3} 0x[0-9a-f]{16} fd00::", out)


def test_words_of_the_field_are_no_names() -> None:
    line = '{"user": "root", "hostname": "gpu", "pod_name": "train"} the gpu of root runs train'
    assert text_of(line, "gpu") == line


@given(st.text(max_size=300), st.text(alphabet="abcdefghij-", min_size=4, max_size=12))
def test_any_text_and_no_second_change(text: str, host: str) -> None:
    redactor = Redactor(KEY)
    redactor.learn([text], host)
    out = redactor.text(text)
    assert out.count("\n") == text.count("\n")


@given(st.binary(max_size=200))
def test_bytes_that_are_no_text_survive(data: bytes) -> None:
    _, (out,), _, count = redacted("some-host", [Reply(CallKind.FILE, ("/x",), data=data)], KEY)
    if not count:
        assert out.data == data


def test_file_servers_users_and_passwords_go_too() -> None:
    log = (
        "filer7.corp.example.com:/export/ml /mnt/ml nfs4 rw,addr=10.1.2.3 0 0\n"
        "219 218 0:50 / /mnt/x rw,relatime - nfs4 vault9:/export/x rw,vers=4.2\n"
        "device vault9:/export/x mounted on /mnt/x with fstype nfs4 statvers=1.1\n"
        "//winfs12/share /mnt/w cifs rw,username=bobbyt,domain=CORP 0 0\n"
        "fetch --password=hunter2 token=tok33n https://carol:s3same@198.51.100.7/x?access_token=abcd99\n"
        "/dev/nvme0n1p1 / ext4 rw 0 0\nNVRM: Xid (PCI:0000:3b:00): 79, pid=1, name=train.py\n"
    )
    out = text_of(log)
    for secret in ("filer7", "vault9", "winfs12", "bobbyt", "hunter2", "tok33n", "s3same", "abcd99"):
        assert secret not in out, secret
    for kept in ("nfs4", "cifs", "/mnt/ml", "/dev/nvme0n1p1 / ext4", "Xid (PCI:0000:3b:00): 79, pid=1, name=train.py"):
        assert kept in out, kept
    assert len(set(re.findall(r"(node-\w+):/export/x", out))) == 1


def test_the_map_of_users_and_short_options_of_a_snapshot() -> None:
    data = (
        b'{"schema": "gpudiag/processes/1", "users": {"0": "root", "101": "postgres", "1000": "alicew"}, '
        b'"all": [{"cmdline": ["mysql", "-pswordfish", "-u", "--opt=x1y2"], "comm": "postgres"}]}'
    )
    _, (out,), _, _ = redacted("n1", [Reply(CallKind.SNAPSHOT, ("processes",), data=data)], KEY)
    assert b"alicew" not in out.data
    assert b"swordfish" not in out.data
    assert b"x1y2" not in out.data
    assert out.data.count(b"postgres") == 2, "a service's user names its programs"
    assert b'"-p..."' in out.data


@pytest.mark.parametrize("seed", [1, 2])
def test_of_500_planted_secrets_none_is_left(seed: int) -> None:
    """Each in a line of a log, of a JSON document, and behind a prompt; the words around them stay."""
    secrets = planted(500, seed)
    assert len({p.kind for p in secrets}) >= 90
    log = "\n".join(f"Jan  3 12:00:01 {'ab'} app[1]: {p.line}" for p in secrets)
    document = json.dumps({"host": "ab", "lines": [p.line for p in secrets]})
    replies = [
        Reply(CallKind.COMMAND, ("dmesg",), data=text.encode())
        for text in (log, document, "\n".join(p.line for p in secrets))
    ]
    host, out, _, _ = redacted("ab", replies, KEY)
    left = [(p.kind, p.line) for p in secrets if any(p.secret.encode() in r.data for r in out)]
    assert left == []
    assert host != "ab"
    assert not re.search(
        rb"(?<![\w-])ab(?![\w-])", out[0].data + out[1].data
    )  # a name of two letters, where hosts are named
    for kept in (b"cannot connect to", b"--lr 0.1", b"NCCL INFO Bootstrap", b"ckpt.pt", b"12:00:01"):
        assert kept in out[0].data


def test_what_only_looks_like_a_secret_stays() -> None:
    kept = (
        "import torch.nn.functional as F", "libcuda.so.1 of 535.183.01", "docs at https://docs.nvidia.com/deploy/xid-errors/", "net.core.rmem_max = 1",
        "token 12 of 4096", "/data/models/llama and /scratch/shared/x", "sk_buff leak in ip_rcv", "user 1000 pid 12",
        "nvidia-fabricmanager.service: Failed", "0000:3b:00.0: link down, speed 8.0 GT/s", "train.py --batch-size 32",
        "PWD=/var/lib/x", "inter-token latency in seconds", "the token expired yesterday", "key: value", "node 3 of 4 is down",
        "_ZN4c10d16ProcessGroupNCCL8WorkNCCL15checkTimeoutEv", "Cijk_Ailk_Bljk_BBH_MT128x128x32_MI32x32x8x1_SE_1LDSB0_APM1_ABV0",
        "_ZN5aiter24add_rmsnorm_quant_kernelIDF16bDF16bLi256ELi8E", "eth0: NIC Link is Up 10000 Mbps", "commit 3f786850e387550fdab836ed7e6dc881de23001b",
    )  # fmt: skip
    for line in kept:
        assert text_of(line, "gpu-12") == line


def test_a_bundle_that_kept_a_name_is_found_out(tmp_path: Path) -> None:
    """The counter-test of `collect --redact`, on bundles of each form: as a word of its own, in a file or in a file's name."""
    reply = Reply(CallKind.COMMAND, ("uname",), data=b"Linux ash-gpu-17 5.15.0\nchannel ann_x alice.w:", exit_code=0)
    for name in ("b.tar.gz", "b.zip", "folder"):
        write(tmp_path / name, "n1", [reply], 1, "0")
        assert left(tmp_path / name, ["ash-gpu-17", "ann", "alice.w", "n1", "bob", "node"]) == ["ash-gpu-17", "alice.w"]
