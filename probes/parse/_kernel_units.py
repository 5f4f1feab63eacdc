"""Services that start jobs on a node, keep its clock or mount its file systems: what became of them, in systemd's lines, and what chronyd and NVIDIA's device plugin say.

NVIDIA's daemons have events of their own (`_kernel_fabric`); of other units nothing is said: on a sound machine some fail as a habit.
"""

from __future__ import annotations

from collections.abc import Mapping

from knowledge.observation import Scope, Subject
from probes.parse._kernel_common import Reading, from_kernel, is_command, rx, within
from probes.parse._kernel_shape import Entry, Kind
from probes.parse._logtime import SECOND
from probes.parse._smi_errors import init_state
from probes.parse._systemctl import ROLE_OF, mount_point, role_of

STATES = (
    "node.driver.state",
    "node.kubernetes.plugin.state",
    "node.time.offset",
    "raid.members.failed",
    "raid.members.missing",
    "service.result",
    "service.mount_point",
    "service.role",
    "service.state",
)
_STORAGE = ("beegfs-client", "beegfs-helperd", "gpfs", "weka-agent")  # clients of parallel file systems
_OURS = sorted(
    (*(unit for unit in ROLE_OF if not unit.startswith(("nvidia-", "dcgm"))), *_STORAGE), key=len, reverse=True
)
_NAMES = "|".join(_OURS)
# How distributions describe the units: a systemd before 249 names one that it started by nothing else.
_DESCRIBED = {
    "Slurm node daemon": "slurmd", "MUNGE authentication service": "munge", "containerd container runtime": "containerd",
    "Docker Application Container Engine": "docker", "kubelet: The Kubernetes Node Agent": "kubelet", "Kubernetes Kubelet Server": "kubelet",
    "NTP client/server": "chronyd", "chrony, an NTP client/server": "chrony", "Network Time Service": "ntpd",
}  # fmt: skip
TRIGGERS = (
    rf"(?:{_NAMES})\.service", rf"(?:Started|Stopped) (?:{'|'.join(_DESCRIBED)})", r"System clock w(?:rong|as stepped)",
    r"No devices found\. Waiting", r"Registered device plugin", r"egistration request from device plugin", r"device-plugins/nvidia",
    r"\.mount: Failed", r"systemd\[.{1,20}Mounted ", r"nvidia-container-cli: init", r"[Ff]ailed to initialize NVML: ",
)  # fmt: skip
HINTS = (
    *(f"{unit}.service" for unit in _OURS),
    *_DESCRIBED,
    "System clock w",
    "device plugin",
    "No devices found",
    "device-plugins/nvidia",
    ".mount: Failed",
    "Mounted ",
    "nvidia-container-cli",
    "initialize NVML",
)
LOOP, STEADY = 3, 600 * SECOND  # restarts that are a loop until it has run for so long (`service-restart-loop`)
# slurmd.service: Main process exited, code=killed, status=9/KILL       containerd.service: Failed with result 'oom-kill'.
# kubelet.service: Start request repeated too quickly.                    slurmd.service: Deactivated successfully.
_SAID = (
    rf"^({_NAMES})\.service: (?:(?:Main|Control) process exited, code=(\w{{1,20}}), status=(\S{{1,30}})|Failed with result '([\w-]{{1,40}})'|"
    r"(Start request repeated too quickly)|(?:Deactivated successfully|Succeeded)\b)"
)
# home.mount: Failed with result 'exit-code'.            Mounted /home.       Mounted home.mount - /home.
_MOUNT = r"^([\w@.\\-]{1,120}\.mount): Failed with result '([\w-]{1,40})'|^Mounted (?:([\w@.\\-]{1,120}\.mount)\b|(/\S{1,120}?)\.?$)"
# ... nvidia-container-cli: initialization error: nvml error: driver not loaded: unknown       (containerd, dockerd, kubelet)
_CONTAINER = r"nvidia-container-cli: initialization error: (.{1,120})"
# error: Failed to initialize NVML: Driver/library version mismatch       (slurmd, nvidia-device-plugin, dcgm-exporter)
_NVML = r"[Ff]ailed to initialize NVML: (.{1,120})"
# kubelet.service: Scheduled restart job, restart counter is at 12.
_AGAIN = rf"^({_NAMES})\.service: Scheduled restart job, restart counter is at (\d{{1,9}})"
# Started slurmd.service - Slurm node daemon.           Stopped Slurm node daemon.
_STARTED = rf"^(Started|Stopped) (?:({_NAMES})\.service\b|(.{{1,80}}?)\.?$)"
# System clock wrong by 412.331221 seconds             System clock was stepped by 412.331221 seconds
_WRONG = r"System clock (?:wrong by (-?\d{1,9}(?:\.\d{1,9})?) seconds|was stepped by)"
SLEW = 12  # ns in which chronyd takes back one, at most (its maxslewrate, 83333.333 ppm)
# No devices found. Waiting indefinitely.        Registered device plugin for 'nvidia.com/gpu' with Kubelet
# ... Error while dialing dial unix /var/lib/kubelet/device-plugins/nvidia-gpu.sock: connect: connection refused
# Got registration request from device plugin with resource name "nvidia.com/gpu"
_PLUGIN = (
    r"(No devices found\. Waiting indefinitely)|(device-plugins/nvidia\S{0,40}\.sock.{0,60}(?:connection refused|no such file))|"
    r"Registered device plugin for '?nvidia\.com/|registration request from device plugin .{0,60}nvidia\.com/"
)
# md/raid1:md0: Disk failure on nvme1n1p2, disabling device.            md: md0: recovery done.
_ARRAY = r"md/raid(?:1|4|5|6|10|456):(\w{1,20}): Disk failure on ([\w-]{1,40})|^md: (\w{1,20}): recovery done"
_IN_ORDER = ("0/SUCCESS", "15/TERM")  # ended by itself, or on request


def read(reading: Reading) -> None:
    """The state of each such unit as the last line about it says, and how it ended; nothing of one that did not fail."""
    last: dict[tuple[str, str], tuple[Entry, str]] = {}
    ended: dict[tuple[str, str], tuple[Entry, str]] = {}
    restarts: dict[tuple[str, str], int] = {}
    ends: dict[str, Entry] = {}
    for entry in reading.entries:
        host = reading.host(entry)
        ends[host] = entry
        if entry.boots:  # what a unit was before tells nothing of it now
            last = {key: told for key, told in last.items() if key[0] != host}
        elif entry.kind is Kind.DAEMON and entry.tag == "systemd":
            if again := rx(_AGAIN).search(entry.message):
                last[host, again[1]] = entry, "restarting"
                restarts[host, again[1]] = int(again[2])
            elif told := _told(entry.message):
                key = host, told[0]
                last[key] = entry, told[1]
                if told[2]:
                    ended[key] = entry, told[2]
    _daemons(reading, ends)
    _arrays(reading)
    for key, (entry, state) in sorted(last.items()):
        if key not in ended:
            continue
        if state == "running" and restarts.get(key, 0) >= LOOP and within(entry, ends[key[0]], STEADY):
            state = "restarting"
        subject = Subject(Scope.OBJECT, key[1] if "." in key[1] else f"{key[1]}.service", reading.node(entry))
        reading.add("service.state", subject, entry, state)
        reading.add("service.role", subject, entry, role_of(key[1]) or "other")
        if point := mount_point(key[1]):
            reading.add("service.mount_point", subject, entry, point)
        if state != "running":
            reading.add("service.result", subject, *ended[key])


def _told(message: str) -> tuple[str, str, str] | None:
    """The unit that a line of systemd is about, its state since, and how it ended where it failed."""
    if found := rx(_SAID).search(message):
        if found[2]:
            return None if found[3] in _IN_ORDER else (found[1], "failed", f"{found[2]}, status {found[3]}")
        result = "start-limit-hit" if found[5] else found[4]
        return (found[1], "failed", result) if result else (found[1], "stopped", "")
    if "ount" in message and (found := rx(_MOUNT).search(message)):
        unit = found[1] or found[3] or f"{found[4].strip('/').replace('-', 'x2d').replace('/', '-') or '-'}.mount"
        return unit, "failed" if found[2] else "running", found[2] or ""
    if found := rx(_STARTED).search(message):
        unit = found[2] or _DESCRIBED.get(found[3], "")
        return (unit, "running" if found[1] == "Started" else "stopped", "") if unit else None
    return None


def _daemons(reading: Reading, ends: Mapping[str, Entry]) -> None:
    """How far the clock is off at the end of the log, and whether the device plugin serves, by the last word of each."""
    offsets: dict[str, tuple[Entry, float]] = {}
    plugins: dict[str, tuple[Entry, str]] = {}
    drivers: dict[str, tuple[Entry, str]] = {}
    for entry in reading.entries:
        host, message = reading.host(entry), entry.message
        if entry.boots:
            offsets.pop(host, None)
            plugins.pop(host, None)
            drivers.pop(host, None)
        elif message.startswith("NVRM: loading NVIDIA"):
            drivers.pop(host, None)
        elif "System clock w" in message and entry.kind is Kind.DAEMON and (found := rx(_WRONG).search(message)):
            offsets[host] = entry, abs(float(found[1] or 0))
        elif (
            "nvidia-container-cli" in message
            and (found := rx(_CONTAINER).search(message))
            and not is_command(entry, found.start())
        ) or (
            ("initialize NVML" in message and entry.kind is Kind.DAEMON and (found := rx(_NVML).search(message)))
            and not is_command(entry, found.start())
        ):
            drivers[host] = entry, found[1]
        elif ("device" in message) and entry.kind is not Kind.KERNEL and (found := rx(_PLUGIN).search(message)):
            plugins[host] = entry, "found_none" if found[1] else "silent" if found[2] else "serves"
    for host, (entry, off) in sorted(offsets.items()):
        if within(entry, ends[host], int(off * SLEW * SECOND)) and off:
            reading.add("node.time.offset", reading.node(entry), entry, round(off * 1000, 6))
    for _, (entry, reason) in sorted(drivers.items()):
        told = init_state(reason)
        if told.value is not None:
            reading.add("node.driver.state", reading.node(entry), entry, str(told.value))
    for _, (entry, state) in sorted(plugins.items()):
        reading.add("node.kubernetes.plugin.state", reading.node(entry), entry, state)


def _arrays(reading: Reading) -> None:
    """Which members a software array with redundancy has dropped, until it was rebuilt."""
    failed: dict[Subject, tuple[Entry, dict[str, None]]] = {}
    for entry in reading.entries:
        if "md" in entry.message and from_kernel(entry) and (found := rx(_ARRAY).search(entry.message)):
            array = Subject(Scope.OBJECT, found[1] or found[3], reading.node(entry))
            members = failed.get(array, (entry, {}))[1] | {found[2]: None} if found[2] else {}
            failed[array] = entry, members
    for array, (entry, members) in failed.items():
        reading.add("raid.members.missing", array, entry, len(members))
        if members:
            reading.add("raid.members.failed", array, entry, ", ".join(sorted(members)))
