"""The message of a node's condition names an XID and its GPU, or states none: both must stand there, and once."""

from __future__ import annotations

from probes.parse._kubectl_events import xid_of_condition
from tests.cases import each


@each(
    ("message", "told"),
    [
        ("XID 79 on GPU 0000:c3:00.0", ("0000:c3:00.0", 79)), ("Xid error 94 seen on GPU 3", ("index:3", 94)),
        ("NVRM: Xid (PCI:0000:9b:00): 48, pid=1", ("0000:9b:00.0", 48)),
        ("XidCriticalError: Xid=95 on GPU-5a1c2be0-8c7e-6c0b-1f8b-9a7e30f41d22", ("GPU-5a1c2be0-8c7e-6c0b-1f8b-9a7e30f41d22", 95)),
        ("XID 79 on 0000:c3:00.0 and XID 48 on 0000:9b:00.0", None), ("XID 79 on a GPU", None), ("no XID on GPU 0000:c3:00.0", None),
        ("kubelet has sufficient memory available", None),
    ],
)  # fmt: skip
def test_an_xid_is_told_with_its_gpu(message: str, told: tuple[str, int] | None) -> None:
    found = xid_of_condition("GpuXidError", message, "n1")
    assert (found and (found[0].id, found[1].code)) == told
