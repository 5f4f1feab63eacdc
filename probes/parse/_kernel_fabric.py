"""Fabric Manager's messages, in its own log and in the system log, and NVIDIA's other daemons."""

from __future__ import annotations

from knowledge.identity import normalise_pci
from knowledge.observation import Scalar, Scope, Subject
from probes.parse._kernel_common import PCI, Reading, body, number, rx, within
from probes.parse._kernel_shape import Entry, Kind
from probes.parse._logtime import SECOND

# detected NVSwitch non-fatal error 12028 on fid 0 on NVSwitch pci bus id 00000000:86:00.0 physical id 3 port 61      ... NVSwitch pci 0000:c6:00.0 ...
_SXID = (
    r"detected NVSwitch (non-fatal|fatal) error (\d{1,6})\b.{0,60}?pci (?:bus id:? )?([0-9a-fA-F:.]{7,16})"
    r"(?: physical id \d{1,4})?(?: port (\d{1,4}))?"
)
# request to query NVSwitch device information from NVSwitch driver failed with error:WARNING Nothing to do [NV_WARN_NOTHING_TO_DO]
_NOTHING = r"NV_WARN_NOTHING_TO_DO|failed with error: ?WARNING Nothing to do"
# fabric manager NVIDIA GPU driver interface version 535.104.05 don't match with driver version 535.129.03. Please update ...
_MISMATCH = (
    r"[Ff]abric [Mm]anager.{0,60}version:? (\d{1,5}(?:\.\d{1,5}){1,2}) (?:don't|doesn't|does not|do not) match.{0,40}"
    r"driver version:? (\d{1,5}(?:\.\d{1,5}){1,2})"
)
# detected number of NVSwitches don't match with any supported system topology, aborting fabric manager
# failed to initialize NVSwitch based system. fabric manager will exit
# fabric manager is exiting as fabric manager fault tolerance config access link failure mode is abort
# Fabric Manager failed to initialize: aborting
_GAVE_UP = (
    r"(?i)\babort\w* (?:the )?fabric ?manager|\bfabric ?manager (?:will|is|has to|must)? ?(?:now )?(?:exit|abort|terminat)|"
    r"\bfabric ?manager failed to initialize\b|"
    r"failed to initialize (?:the )?NVSwitch based system|number of NVSwitch\w* (?:don't|doesn't|do(?:es)? not) match"
)
_NO_SWITCH = (
    r"(?i)number of NVSwitch|\bno NVSwitch|NVSwitch\w* (?:is |are )?(?:missing|not found)|supported system topology"
)
# Detected NVLink training failure between GPU pci bus id 00000000:5D:00.0 NVLink 4 and NVSwitch pci bus id 00000000:07:00.0 port 33
# GPU 00000000:5D:00.0 with UUID GPU-... is excluded from the NVLink fabric because of access link failure
# NVLink initialization failed for GPU with pci bus id 00000000:5D:00.0 physical id 5 NVLink index 4
# detected degraded NVSwitch connection: GPU pci bus id 00000000:5D:00.0 physical id 5 NVLink 4 is down
# GPU index: 4 GPU PCI bus id: 00000000:9D:00.0 NVLink index: 12 and NVSwitch physical id: 2 NVLink index: 33 connection is not trained to ACTIVE
_TRAINING = (
    r"(?i)NVLink initiali[sz]ation failed|NVLink (?:index )?\d{1,3} is down|NVLink.{0,40}\btrain\w* (?:has )?fail|fail\w{0,4} (?:to |in |during )?(?:the )?train\w{0,4}.{0,60}NVLink|"
    r"excluded from .{0,40}because of .{0,40}link fail|NVLink.{0,160}\bnot trained to ACTIVE"
)
# failing GPU with UUID GPU-aa0e9f2d-1111-2222-3333-444455556666 due to NVLink training failure
_TRAINED_GPU = rf"\bGPU (?:with )?(?:(?:(?:pci|PCI) )?bus id:? |UUID )?({PCI}|GPU-[0-9a-f]{{8}}(?:-[0-9a-f]{{4}}){{3}}-[0-9a-f]{{12}})(?:.{{0,20}}?\b(?:NVLink|link)(?: index)?:? (\d{{1,3}})\b)?"
_TRAINED_SWITCH = (
    rf"\bNVSwitch (?:(?:pci |PCI )?bus id:? ({PCI})|({PCI})|physical id:? (\d{{1,3}}))"
    r"(?:.{0,30}?\b(?:port|NVLink index:?) (\d{1,3})\b)?"
)
# nvidia-imex[2214]: [Nov 27 2025 10:12:00] [ERROR] [tid 2240] Connection lost to node 7 with ip address 192.0.2.27.
# [Nov 28 2026 10:44:20] [WARNING] [tid 4140] Connection to node 1 with ip address 10.50.0.12 lost. Number of times disconnected: 1
# [Nov 28 2026 10:44:21] [ERROR] [tid 4140] Failed to connect to node 1 with ip address 10.50.0.12: Connection refused
# [Nov 28 2026 10:44:21] [ERROR] [tid 4133] Failed to connect to remote IMEX server 10.50.0.13: node 2, version mismatch 565.57.01
_IMEX_LOST = r"(?:Connection lost to node \d|Connection to node \d[^\n]{1,80} lost\b|Failed to connect to (?:node \d|remote IMEX server))"
_IMEX_ADDRESS = r"(?:ip address|IMEX server) ([0-9a-fA-F:.]{3,45}?)[.:]?(?:\s|$)"
_IMEX_NODE = r"\bnode (\d{1,4})\b"
_IMEX_WHY = (
    r"version mismatch(?: [\d.]{1,20}\d)?|Connection refused|[Tt]imed out|No route to host|Network is unreachable"
)
# IMEX version 570.124.06 is running with the following configuration options
_IMEX_VERSION = r"\bIMEX version (\d{1,5}(?:\.\d{1,5}){1,2}) is running"
# Connection established to node 1 with ip address 10.50.0.12. Number of times connected: 1
OF_IMEX = rf"{_IMEX_VERSION}|\bnode \d{{1,4}} with ip address |remote IMEX server"
_IMEX_LEVEL = r"\[(ERROR|CRITICAL|FATAL)\] (?:\[tid \d{1,12}\] )?"
_NAMED = r"\bNVSwitch (?:with )?(?:physical|pci|bus)\b"
# Fabric Manager version is : 535.104.05
_VERSION = r"[Ff]abric [Mm]anager version is ?: ?(\d{1,5}(?:\.\d{1,5}){1,2})"
# nvidia-fabricmanager.service: Control process exited, code=exited, status=1/FAILURE
# nvidia-dcgm.service: Main process exited, code=killed, status=11/SEGV       ...: Failed with result 'exit-code'.
_UNIT = (
    r"((?:nvidia-[\w@-]{1,40}|dcgm[\w-]{0,20}|nv-hostengine))\.service: (?:(?:Main|Control) process exited, (code=.{1,60})|"
    r"Failed with result '([\w-]{1,40})'|Watchdog timeout)"
)
# Failed to start nvidia-fabricmanager.service - NVIDIA fabric manager service.     Failed to start NVIDIA Persistence Daemon.
_START = r"Failed to start (.{0,60}?(?:NVIDIA|nvidia|DCGM).{0,60})"
_UNITS = (("abric", "fm_failed"), ("ersistence", "persistenced_failed"), ("dcgm", "hostengine_failed"),
          ("DCGM", "hostengine_failed"), ("hostengine", "hostengine_failed"))  # fmt: skip
_SERVICES = ("fm_failed", "hostengine_failed", "modprobe_failed", "nvidia_service_failed", "persistenced_failed")
BURSTS = dict.fromkeys(_SERVICES, 10 * SECOND)  # `LogFormat.bursts`
# nvidia-persistenced[812]: Failed to query NVIDIA devices. Please ensure that the NVIDIA device files (/dev/nvidia*) exist
_PERSISTENCE = (
    r"[Ff]ailed to (?:query|open|set|enable|initialize|lock|unlock|chown).{0,300}|persistence mode .{0,40}failed"
)
# nvidia-modprobe: failed to create device node        modprobe: ERROR: could not insert 'nvidia': No such device
# modprobe: FATAL: Module nvidia not found in directory /lib/modules/5.15.0-112-generic
_MODPROBE = r"Module nvidia\S{0,20} not found|(?:could not insert|[Ff]ailed to (?:insert|load|create)).{0,20}'?nvidia|NVIDIA: failed to (?:insmod|create|load)|[Ff]ailed to (?:create|load|unload).{0,60}"
_CRASH = r"nv-hostengine.{0,40}(?:segfault|general protection|trap)|terminate called|Segmentation fault|core dumped"
_SEVERE = ("ERROR", "CRITICAL", "FATAL", "ALERT")
# ... in syslog the level is a word ahead of the text:       nv-fabricmanager[4177]: [ERROR] text
_LEVEL = r"\b(ERROR|CRITICAL|FATAL)\b|\bfailed with error\b|\b[Ff]ail(?:ed|ure)\b|\berror\b"


def read(reading: Reading) -> None:
    """Daemon lines of a system log."""
    last: dict[tuple[str, str], Entry] = {}
    for entry in reading.entries:
        if entry.tag.endswith("fabricmanager"):
            told = rx(_LEVEL).search(entry.message) or rx(_GAVE_UP).search(entry.message)
            fabric(
                reading, entry, (told[1] or "ERROR") if told and told.re is rx(_LEVEL) else "ERROR" if told else "INFO"
            )
        elif entry.tag.startswith("nvidia-imex"):
            found = rx(_IMEX_LEVEL).search(entry.message)
            imex(reading, entry, found[1] if found else "INFO")
        elif entry.kind is Kind.KERNEL:
            if "nv-hostengine" in entry.message and (found := rx(_CRASH).search(entry.message)):
                _service(reading, entry, "hostengine_failed", "nv-hostengine", body(found[0], 120), last)
        elif entry.tag == "systemd":
            _systemd(reading, entry, last)
        elif entry.tag.startswith(("nvidia-persistenced", "nvidia-modprobe", "modprobe", "nv-hostengine", "dcgm")):
            _daemon(reading, entry, last)


def fabric(reading: Reading, entry: Entry, level: str) -> None:
    """One message of Fabric Manager: an NVSwitch error, a reason not to run, or another error."""
    message = entry.message
    text = body(message)
    if found := rx(_SXID).search(message):
        switch = Subject(Scope.NVSWITCH, normalise_pci(found[3]), reading.node(entry))
        word = "Fatal" if found[1] == "fatal" else "Non-fatal"
        fields: dict[str, Scalar] = {
            "severity_word": word, "link": number(found[4]), "text": text, "reporter": "fabric-manager",
        }  # fmt: skip
        reading.event("sxid", switch, entry, fields, code=int(found[2]))
    elif _imex_lost(reading, entry):  # its own log has the same layout
        pass
    elif rx(_NOTHING).search(message):
        reading.event("fm_nothing_to_do", reading.node(entry), entry, {"text": text})
    elif found := rx(_MISMATCH).search(message):
        fields = {"fabric_manager": found[1], "driver": found[2], "text": text}
        reading.event("fm_version_mismatch", reading.node(entry), entry, fields)
    elif found := rx(_VERSION).search(message):
        reading.add("node.fabricmanager.version", reading.node(entry), entry, found[1])
    elif rx(_TRAINING).search(message) and (gpu := rx(_TRAINED_GPU).search(message)):
        peer = rx(_TRAINED_SWITCH).search(message)
        bus, port = (peer[1] or peer[2], peer[4]) if peer else (None, None)
        other = normalise_pci(bus) if bus else peer[3] if peer else None
        ends = (("NVLink", gpu[2]), ("NVSwitch", other), ("port", port))
        where = " ".join(f"{word} {told}" for word, told in ends if told)
        fields = {
            "link": number(gpu[2]), "switch": other, "port": number(port), "where": where or body(text, 120),
            "text": text,
        }  # fmt: skip
        reading.event("nvlink_training_failed", reading.gpu(entry, gpu[1]), entry, fields)
    elif level.upper() in _SEVERE and rx(_GAVE_UP).search(message):
        why = "no_switch" if rx(_NO_SWITCH).search(message) else "start"
        reading.event("fm_gave_up", reading.node(entry), entry, {"why": why, "text": text})
    elif level.upper() in _SEVERE:
        fields = {"severity": level.lower(), "switched": bool(rx(_NAMED).search(message)), "text": text}
        reading.event("fm_error", reading.node(entry), entry, fields)


def imex(reading: Reading, entry: Entry, level: str) -> None:
    """One message of the memory export service: its version, a node that it lost, or another error."""
    if found := rx(_IMEX_VERSION).search(entry.message):
        reading.add("node.version.imex", reading.node(entry), entry, found[1])
    elif not _imex_lost(reading, entry) and level.upper() in _SEVERE:
        reading.event(
            "imex_error", reading.node(entry), entry, {"text": body(rx(_IMEX_LEVEL).split(entry.message)[-1])}
        )


def _imex_lost(reading: Reading, entry: Entry) -> bool:
    """Whether the message is the memory export service's, of a node that it lost or does not reach."""
    address = rx(_IMEX_ADDRESS).search(entry.message)
    if address is None or rx(_IMEX_LOST).search(entry.message) is None:
        return False
    peer, why = rx(_IMEX_NODE).search(entry.message), rx(_IMEX_WHY).search(entry.message)
    fields = {
        "peer": number(peer[1]) if peer else None, "address": address[1], "why": why[0] if why else None,
        "text": body(entry.message),
    }  # fmt: skip
    reading.event("imex_connection_lost", reading.node(entry), entry, fields)
    return True


def _systemd(reading: Reading, entry: Entry, last: dict[tuple[str, str], Entry]) -> None:
    if found := rx(_UNIT).search(entry.message):
        name, result = found[1], found[2] or found[3] or "watchdog timeout"
        if "15/TERM" in result:
            return  # stopped on request
    elif found := rx(_START).search(entry.message):
        name, result = found[1].strip(" ."), "failed to start"
    else:
        return
    fact = next((fact for word, fact in _UNITS if word in name), "nvidia_service_failed")
    _service(reading, entry, fact, name, result, last)


def _daemon(reading: Reading, entry: Entry, last: dict[tuple[str, str], Entry]) -> None:
    message = entry.message
    if entry.tag.startswith("nvidia-persistenced"):
        fact, pattern = "persistenced_failed", _PERSISTENCE
    elif "modprobe" in entry.tag:
        fact, pattern = "modprobe_failed", _MODPROBE
    else:
        fact, pattern = "hostengine_failed", _CRASH
    if found := rx(pattern).search(message):
        _service(reading, entry, fact, entry.tag, body(found[0], 120), last)


def _service(
    reading: Reading, entry: Entry, fact: str, unit: str, result: str, last: dict[tuple[str, str], Entry]
) -> None:
    """One event for the lines that a failure prints within ten seconds, of lines without a time within twenty lines."""
    key = (fact, reading.host(entry))
    before = last.get(key)
    last[key] = entry
    near = before is not None and (entry.at is not None or entry.number - before.number <= 20)
    if before is not None and near and within(before, entry, 10 * SECOND):
        reading.again.add(entry.number)
        return
    reading.event(fact, reading.node(entry), entry, {"unit": unit, "result": result, "text": body(entry.message)})
