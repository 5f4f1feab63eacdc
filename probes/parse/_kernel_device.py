"""PCI devices that the kernel cannot reset, bring a link up to, find addresses for, or let at memory.

Source of the lines: drivers/pci, drivers/iommu of Linux 4.15 to 6.17.
"""

from __future__ import annotations

from knowledge.identity import normalise_pci
from knowledge.observation import Scalar, Scope, Subject
from probes.parse._kernel_common import PCI, Reading, body, from_kernel, number, rx, within
from probes.parse._kernel_shape import Entry
from probes.parse._logtime import SECOND

EVENTS = ("iommu_fault", "pci_reset_failed")
BURSTS = {"iommu_fault": 10 * SECOND}  # `LogFormat.bursts`
TRIGGERS = (r"; giving up", r"retraining", r"Link Active not set", r"Cannot train link", r"Power fault", r"speed restriction",
            r"BAR [0-5]", r"DMAR: ", r"Event logged \[", r"arm-smmu")  # fmt: skip
HINTS = ("giving up", "retraining", "Link Active", "train link", "Power fault", "restriction", "BAR ", "DMAR", "Event logged",
         "arm-smmu")  # fmt: skip
_FULL = r"[0-9a-fA-F]{4,8}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2}\.[0-9a-fA-F]"
# nvidia 0000:2a:00.0: not ready 65535ms after FLR; giving up          vfio-pci 0000:2a:00.0: not ready 65535ms after bus reset; giving up
_RESET = rf"(?:([\w-]{{1,40}}) )?({_FULL}): not ready (\d{{1,9}})ms after ([\w >:-]{{1,40}}); giving up"
# pcieport 0000:a0:01.0: broken device, retraining non-functional downstream link at 2.5GT/s      pcieport 0000:a0:01.0: retraining failed
# pcieport 0000:5c:01.0: Data Link Layer Link Active not set in 1000 msec     pcieport 0000:5c:01.0: pciehp: Slot(5): Cannot train link: status 0x7041
# pcieport 0000:5c:01.0: pciehp: Slot(5): Power fault
_LINK = (
    rf"({_FULL})\S{{0,12}}: (?:pciehp: )?(?:Slot\(([^)]{{1,16}})\): )?(?:"
    r"(broken device, retraining|retraining failed|Cannot train link)|(Data Link Layer Link Active not set)|(Power fault))"
)
# pcieport 0000:a0:01.0: removing 2.5GT/s downstream link speed restriction       the second try went well
_TRAINED = rf"({_FULL}): removing .{{1,12}} downstream link speed restriction"
# pci 0000:5d:00.0: BAR 1: failed to assign [mem size 0x2000000000 64bit pref]      pci 0000:5d:00.0: BAR 1 [mem size ...]: failed to assign
# pci 0000:5d:00.0: BAR 1: no space for [mem size 0x2000000000 64bit pref]
_BAR = (
    rf"({_FULL}): BAR ([0-5])(?:: (?:failed to assign|no space for) \[mem size 0x([0-9a-fA-F]{{1,16}})| \[mem size 0x([0-9a-fA-F]{{1,16}})"
    r"[^\]]{0,40}\]: (?:failed to assign|can't assign; no space))"
)
# pci 0000:5d:00.0: BAR 1: assigned [mem 0x...]           pci 0000:5d:00.0: BAR 1 [mem 0x...]: assigned
_ASSIGNED = rf"({_FULL}): BAR ([0-5])(?:: assigned| \[mem 0x[^\]]{{1,60}}\]: assigned)"
_WINDOW = 1 << 30  # bytes of a BAR that hardly any device but a GPU asks for
# DMAR: [DMA Write NO_PASID] Request device [9b:00.0] fault addr 0x3fffc000 [fault reason 0x05] PTE Write access is not set
# DMAR: [DMA Read] Request device [0000:9b:00.0] PASID ffffffff fault addr 7f000 [fault reason 06] PTE Read access is not set
_DMAR = rf"DMAR: \[(?:DMA |INTR-)[\w -]{{1,40}}\] Request device \[({PCI})\].{{0,200}}"
# AMD-Vi: Event logged [IO_PAGE_FAULT device=0000:9b:00.0 domain=0x0012 address=0x3fffc000 flags=0x0020]
# nvidia 0000:9b:00.0: AMD-Vi: Event logged [IO_PAGE_FAULT domain=0x0012 address=0x3fffc000 flags=0x0020]
_AMD_VI = rf"(?:({_FULL}): )?AMD-Vi: Event logged \[(?:IO_PAGE_FAULT|\w{{1,40}}(?:ERROR|TIMEOUT)) (?:device=({PCI}))?.{{0,200}}"
# arm-smmu-v3 arm-smmu-v3.9.auto: event: F_TRANSLATION client: 0009:01:00.0 sid: 0x10100 ssid: 0x0 iova: 0x0 ipa: 0x0
_SMMU = rf"arm-smmu[\w.-]{{0,20}} \S{{1,40}}: event: F_\w{{1,30}} client: ({PCI}).{{0,200}}"


def read(reading: Reading) -> None:
    """All recognisers of this module."""
    last: dict[Subject, Entry] = {}
    for entry in reading.entries:
        message = entry.message
        if "giving up" in message and (found := rx(_RESET).search(message)) and from_kernel(entry, found.start()):
            _reset(reading, entry, found[1] or "", found[2], int(found[3]), found[4])
        elif ("DMAR" in message or "AMD-Vi" in message or "smmu" in message) and from_kernel(entry):
            _fault(reading, entry, last)
    _links(reading)
    _bars(reading)


def _reset(reading: Reading, entry: Entry, driver: str, address: str, waited: int, kind: str) -> None:
    """Of anything but a GPU: what becomes of their resets is read in `_kernel_reset`."""
    if driver in ("nvidia", "amdgpu") or reading.is_gpu(entry, address):
        return
    fields: dict[str, Scalar] = {"reset": kind.strip(), "waited_ms": waited, "text": body(entry.message)}
    device = Subject(Scope.PCI, normalise_pci(address), reading.node(entry))
    reading.event("pci_reset_failed", device, entry, fields)


def _fault(reading: Reading, entry: Entry, last: dict[Subject, Entry]) -> None:
    """A burst of one device is one event."""
    found = rx(_DMAR).search(entry.message) or rx(_AMD_VI).search(entry.message) or rx(_SMMU).search(entry.message)
    address = next((group for group in found.groups() if group), "") if found else ""
    if not address:
        return
    device = reading.device(entry, address)
    before = last.get(device)
    last[device] = entry
    if before is not None and within(before, entry, 10 * SECOND):
        reading.again.add(entry.number)
        return
    reading.event("iommu_fault", device, entry, {"device": normalise_pci(address), "text": body(entry.message)})


def _links(reading: Reading) -> None:
    """Links that did not train, and slots without power; a second try that went well takes the first back."""
    told: dict[tuple[str, str, str], tuple[Entry, dict[str, Scalar]]] = {}
    for entry in reading.entries:
        message = entry.message
        if "speed restriction" in message and (good := rx(_TRAINED).search(message)):
            told.pop((reading.host(entry), normalise_pci(good[1]), "training_failed"), None)
        if not any(hint in message for hint in ("retraining", "Link Active", "train link", "Power fault")):
            continue
        found = rx(_LINK).search(message)
        if found is None or not from_kernel(entry):
            continue
        what = "training_failed" if found[3] else "not_active" if found[4] else "power_fault"
        key = (reading.host(entry), normalise_pci(found[1]), what)
        if key in told:
            reading.again.add(entry.number)
        told.setdefault(key, (entry, {"what": what, "slot": found[2], "text": body(message)}))
    for (_, port, _), (entry, fields) in told.items():
        reading.event("pcie_link_down", reading.device(entry, port), entry, fields)


def _bars(reading: Reading) -> None:
    """Large memory regions, or those of a GPU, that got no address; the kernel tries again and often finds one."""
    failed: dict[tuple[str, str, str], Entry] = {}
    for entry in reading.entries:
        if "BAR " not in entry.message or not from_kernel(entry):
            continue
        host = reading.host(entry)
        if good := rx(_ASSIGNED).search(entry.message):
            failed.pop((host, normalise_pci(good[1]), good[2]), None)
        elif found := rx(_BAR).search(entry.message):
            size = number(found[3] or found[4], 16) or 0
            if size >= _WINDOW or reading.is_gpu(entry, found[1]):
                failed.setdefault((host, normalise_pci(found[1]), found[2]), entry)
    for (_, address, _), entry in failed.items():
        fields: dict[str, Scalar] = {"reason": "bar_invalid", "device": address, "text": body(entry.message)}
        reading.event("driver_load_failed", reading.node(entry), entry, fields)
