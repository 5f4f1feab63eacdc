"""The management controller, asked through the machine's own interface (ipmitool): event log, sensors, power supplies.

It answers slowly, some tens of sensors a second: only when it is asked for. Nothing is asked over the network.
"""

from __future__ import annotations

from knowledge.language import Text
from knowledge.observation import Observation
from probes.host import Host
from probes.live import Cost, Needs, ProbeRequest, ProbeSpec
from probes.live._absent import absent
from probes.live._fetch import document
from probes.parse import ipmi_sel, ipmi_sensors

DEVICES = ("/dev/ipmi[0-9]*", "/dev/ipmi/[0-9]*", "/dev/ipmidev/[0-9]*")
CLASS = "/sys/class/ipmi/ipmi0/dev"
INFO = ("ipmitool", "sel", "info")
LOG = ("ipmitool", "sel", "elist", "last", "1000")
SENSORS = ("ipmitool", "sdr", "elist")
LOG_MAIN, SENSORS_MAIN = ("bmc_event",), ("sensor.state", "psu.state")


def collect(request: ProbeRequest, host: Host) -> list[Observation]:
    """Observations of the log and the sensors; without an interface nothing is asked."""
    if not any(host.files(pattern) for pattern in DEVICES):
        why = "there is no interface to a management controller (/dev/ipmi0)"
        return [
            *absent(LOG_MAIN, host, CLASS, ipmi_sel.FORMAT, why),
            *absent(SENSORS_MAIN, host, CLASS, ipmi_sensors.FORMAT, why),
        ]
    found = document(
        host.run(INFO, deadline=min(10.0, request.deadline)), host, ipmi_sel.FORMAT, ("node.bmc.log.used",)
    )
    found = [o for o in found if o.fact != "bmc_event"]  # the summary lists no entries
    found += document(host.run(LOG, deadline=request.deadline), host, ipmi_sel.FORMAT, LOG_MAIN)
    sensors = host.run(SENSORS, deadline=request.deadline)
    return found + document(sensors, host, ipmi_sensors.FORMAT, SENSORS_MAIN, proof=SENSORS_MAIN)


PROBE = ProbeSpec(
    name="bmc",
    title=Text(
        "management controller: event log, sensors, power supplies, fans (ipmitool)",
        "管理控制器：事件日志、传感器、电源与风扇（ipmitool）",
    ),
    provides=tuple(dict.fromkeys((*ipmi_sel.FORMAT.provides, *ipmi_sensors.FORMAT.provides))),
    main=(*LOG_MAIN, *SENSORS_MAIN),
    collect=collect,
    needs=Needs(binaries=("ipmitool",), privileges=("root",), files=DEVICES),
    cost=Cost.SECONDS,
    deadline=60.0,
    default=False,
)
