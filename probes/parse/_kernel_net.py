"""Network adapters in the kernel and system logs: carriers, link states, mlx5 firmware."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from knowledge.identity import normalise_pci
from knowledge.observation import Event, Observation, Scalar, Scope, Status, Subject
from probes.parse._kernel_common import Reading, body, from_kernel, rx
from probes.parse._kernel_shape import Entry, Kind
from probes.parse._logtime import SECOND

BRIEF = 25 * SECOND  # a link that is back by then has flapped, not dropped (gpud, infiniband store)
_FULL = r"[0-9a-fA-F]{4,8}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2}\.[0-9a-fA-F]"
_NAME = r"[A-Za-z][\w.@-]{0,30}"
# ib6: lost carrier      ib6: Gained carrier                                    (systemd-networkd)
_CARRIER = rf"^({_NAME}): (?i:(lost|gained) carrier)\b"
# device (ib0): carrier: link connected       device (eth2): link disconnected          (NetworkManager)
_MANAGER = rf"device \(({_NAME})\): (?:carrier: )?link (connected|disconnected)"
# mlx5_core 0000:5d:00.0 ens1np0: Link up     mlx5_core 0000:5d:00.0: ens1np0: Link down
# igb 0000:01:00.0 eth0: igb: eth0 NIC Link is Down      bnxt_en 0000:4b:00.0 eth2: NIC Link is Up, 100000 Mbps
_DRIVER = rf"(\w{{1,24}}) ({_FULL}):? ({_NAME}): (?:\w{{1,24}}: )?(?:{_NAME} )?(?:NIC )?Link (?:is )?(?i:(up|down))\b"
# bond0: (slave ens1f0np0): link status definitely down, disabling slave       bond0: link status definitely down for interface eth2, disabling it
# bond0: (slave ens1f0np0): link status definitely up, 100000 Mbps full duplex
# bond0: now running without any active interface!       bond0: active interface up!
_BOND_ALL = rf"^({_NAME}): (?:now running without any (active) interface|(active interface up))!"
_BOND = rf"^{_NAME}: (?:\(slave ({_NAME})\): )?link status definitely (up|down)(?: for interface ({_NAME}))?"
# eth0: NIC Link is Down          ib0: link down
_PLAIN = rf"^(?:(\w{{1,24}}): )?({_NAME}): (?:NIC )?[Ll]ink (?:is )?(?i:(up|down))\b"
# infiniband mlx5_3: Port: 1 Link DOWN     mlx5_0: Port: 1 Link ACTIVE
_INFINIBAND = r"(?:infiniband )?(mlx\d_\w{1,10}|hfi1_\d{1,3}|irdma\d{1,3}|bnxt_re\d{1,3}): [Pp]ort:? ?(\d{1,3}):? [Ll]ink (?i:(active|down|up|init))\b"
# Interfaces that come and go with containers and virtual machines.
_VIRTUAL = (
    r"(?:veth|cali|docker|br-|virbr|cni|flannel|vxlan|lxc|lxd|tap|tun|vnet|kube|nodelocal|cilium|dummy|ifb|lo$|azv|"
    r"tunl|weave|podman|incusbr|gre|sit|geneve|wg\d|team|ovs|genev|antrea|eni[0-9a-f]{11}|macvlan|ipvl)"
)
# mlx5_core 0000:5d:00.0: poll_health:835:(pid 0): device's health compromised - reached miss count
# mlx5_core 0000:5d:00.0: mlx5_cmd_check:777:(pid 1234): ACCESS_REG(0x805) op_mod(0x0) failed, status bad parameter(0x3), syndrome (0x15c356)
# mlx5_core 0000:5d:00.0: wait_func:1130:(pid 99): ENABLE_HCA(0x104) timeout. Will cause a leak of a command resource
# mlx5_core 0000:5d:00.0: Port module event[error]: module 0, Cable error, High Temperature
# mlx5_core 0000:5c:00.0: mlx5_pcie_event:299:(pid 268269): Detected insufficient power on the PCIe slot (27W).
# mlx5_core: probe of 0000:01:00.0 failed with error -22     mlx5_core 0000:01:00.0: probe with driver mlx5_core failed with error -22
_MLX = rf"mlx\d_core ({_FULL})(?: {_NAME})?:? (.{{0,400}})"
_START = rf"mlx\d_core: probe of ({_FULL}) (failed with error -\d{{1,4}})"
# infiniband mlx5_3: create_mkey_callback:148:(pid 0): async reg mr failed. status -5       mlx5_3:wait_for_async_commands:...
_IB_DEVICE = r"(?:infiniband )?\b(mlx\d_(?:bond_)?\d{1,3}): ?(\w{1,60}:\d{1,6}:\(pid \d{1,10}\): .{0,300})"
# mlx5_core 0000:5e:00.0: mlx5_health_try_recover:335:(pid 99): health recovery flow aborted, PCI reads still not working
_KINDS = (
    ("dead", r"health recovery (?:flow aborted|failed)|PCI reads still not working"),
    ("start", r"probe with driver mlx\d_core failed with error|failed with error -\d{1,4}$|(?:mlx\d_init_one|probe_one|mlx\d_load_one)\S{0,40} .{0,80}failed"),
    ("power", r"[Dd]etected insufficient power on the PCIe slot"),
    ("temperature", r"High temperature on sensors|(?:synd(?:rome)? 0x\w{1,8}:|Health issue observed,) [Hh]igh [Tt]emperature"),
    ("health", r"health compromised|mlx\d_crdump_collect|print_health_info|poll_health|device is in fatal|[Ff]atal (?:firmware |FW )?error|assert_var|synd(?:rome)? 0x\w+.{0,40}(?:error|fail)|firmware (?:fatal|assert|hang)"),
    ("command", r"mlx\d_cmd\w{0,30}.{0,80}(?:failed|timeout)|wait_func.{0,120}timeout|ACCESS_REG.{0,80}failed|Will cause a leak of a command|async reg mr failed|create_mkey_callback|reg_mr_callback"),
    ("module", r"Port module event(?:\[error\])?: module \d{1,3}, Cable error"),
    ("unplugged", r"Port module event(?:\[error\])?: module \d{1,3}, Cable unplugged"),
    ("completion", r"(?:TX|Error) (?:timeout|cqe|CQE)|Error cqe on cqn|TX timeout"),
)  # fmt: skip
# NETDEV WATCHDOG: ens1f0np0 (mlx5_core): transmit queue 3 timed out           ib0: transmit timeout: latency 2210 msecs
# bnxt_en 0000:31:00.0 ens1f0np0: NETDEV WATCHDOG: CPU: 3: transmit queue 3 timed out 5120 ms           from kernel 6.5 on
_STUCK = (
    rf"NETDEV WATCHDOG: ({_NAME}) \((\w{{1,24}})\): transmit queue \d{{1,6}} timed out|({_NAME}): transmit timeout: latency \d|"
    rf"(\w{{1,24}}) {_FULL} ({_NAME}): NETDEV WATCHDOG: .{{0,20}}transmit queue \d{{1,6}} timed out"
)
# synd 0x1: firmware internal error
_CAUSE = r"\bsynd(?:rome)? 0x[0-9a-fA-F]{1,8}: [\w ,-]{3,80}"
_SYNDROME = r"synd(?:rome)?[ :=]*\(?(0x[0-9a-fA-F]{1,8})"


def read(reading: Reading) -> None:
    """Link changes and adapter errors."""
    for entry in reading.entries:
        message = entry.message
        if "arrier" in message or "ink" in message or "active interface" in message:
            _link(reading, entry)
        if "transmit " in message and (found := rx(_STUCK).match(message)) and from_kernel(entry):
            driver, name = found[2] or found[4], found[1] or found[3] or found[5]
            kind = "completion" if (driver or "mlx").startswith(("mlx", "ib_")) else "queue"
            fields: dict[str, Scalar] = {"kind": kind, "driver": driver, "text": body(message)}
            reading.event("nic_error", Subject(Scope.NIC, name, reading.node(entry)), entry, fields)
        elif "mlx" in message and from_kernel(entry):
            _adapter(reading, entry)
    reading.found = _with_brief(reading.found, reading.context.since)


def _with_brief(found: list[Observation], since: Mapping[int, int]) -> list[Observation]:
    """Each loss of a link with how long it was `away`, where its return follows in the same log; `brief` when that is soon.

    What is up again is no more than information: whoever needs the link has it. Where equal returns were folded between the two
    (`since`, see `Context`), one of them may have come sooner: nobody knows whether it was brief.
    """
    back: dict[Subject, Observation] = {}
    out = []
    for o in reversed(found):
        if o.fact == "link_carrier" and o.status is Status.OK and isinstance(o.value, Event):
            if o.value.get("state") == "up":
                back[o.subject] = o
            else:
                up = back.get(o.subject)
                timed = up is not None and up.clock is o.clock and up.at is not None and o.at is not None
                away = (up.at or 0) - (o.at or 0) if timed and up is not None else None
                brief: bool | None = away is not None and away <= BRIEF
                if up is not None and not brief and _sooner(o, up, since):
                    brief = away = None
                told: dict[str, Scalar] = {
                    "brief": brief,
                    "away_ms": away // 1_000_000 if away is not None else None,
                    "severity": "warning" if up is None else "info",
                }
                o = replace(o, value=Event(None, {**o.value.fields, **told}))
        out.append(o)
    return out[::-1]


def _sooner(down: Observation, up: Observation, since: Mapping[int, int]) -> bool:
    """Whether a return like `up` may stand between the two, among those that it stands for."""
    lost, back = down.source.line, up.source.line
    return lost is not None and back is not None and since.get(back, back) < back - 1 and lost < back - 1


def _link(reading: Reading, entry: Entry) -> None:
    message, pci = entry.message, ""
    if entry.kind is Kind.DAEMON:
        found = rx(_CARRIER).search(message) if "networkd" in entry.tag else None
        found = found or (rx(_MANAGER).search(message) if entry.tag == "NetworkManager" else None)
        if not found:
            return
        name, word = found[1], found[2]
    elif not from_kernel(entry):
        return
    elif (found := rx(_BOND).search(message)) and (found[1] or found[3]):
        name, word = found[1] or found[3], found[2]
    elif found := rx(_BOND_ALL).search(message):
        name, word = found[1], "down" if found[2] else "up"
    elif found := rx(_INFINIBAND).search(message):
        name, word = f"{found[1]}/{found[2]}", found[3]
    elif found := rx(_DRIVER).search(message):
        name, word, pci = found[3], found[4], normalise_pci(found[2])
    elif found := rx(_PLAIN).search(message):
        name, word = found[2], found[3]
        if found[1] is None and entry.kind is Kind.BARE and not rx(r"ib|en|eth|bond|mlx|hsn").match(name):
            return
    else:
        return
    if rx(_VIRTUAL).match(name):
        return
    state = {"lost": "down", "disconnected": "down", "down": "down", "init": "down"}.get(word.lower(), "up")
    fields: dict[str, Scalar] = {
        "state": state, "interface": name, "pci": pci, "source": entry.tag or "kernel", "text": body(message),
    }  # fmt: skip
    scope = Scope.PORT if "/" in name else Scope.NIC  # mlx5_0/1 is a port, ib0 an interface
    reading.event("link_carrier", Subject(scope, name, reading.node(entry)), entry, fields)


def _adapter(reading: Reading, entry: Entry) -> None:
    found = rx(_START).search(entry.message) or rx(_MLX).search(entry.message) or rx(_IB_DEVICE).search(entry.message)
    if not found:
        return
    kind = next((kind for kind, pattern in _KINDS if rx(pattern).search(found[2])), None)
    if kind is None:
        return
    syndrome, cause = rx(_SYNDROME).search(found[2]), rx(_CAUSE).search(found[2])
    fields: dict[str, Scalar] = {
        "kind": kind, "syndrome": syndrome[1] if syndrome else None, "cause": cause[0] if cause else None, "text": body(entry.message),
    }  # fmt: skip
    nic = Subject(Scope.NIC, normalise_pci(found[1]) if ":" in found[1] else found[1], reading.node(entry))
    reading.event("nic_error", nic, entry, fields)
