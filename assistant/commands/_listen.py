"""``gpudiag incident listen``: its options."""

from __future__ import annotations

from typing import Any

ADDRESS = "127.0.0.1:9196"


def add_listen(actions: Any) -> None:
    """The action, beside the others of `incident`."""
    parser = actions.add_parser("listen", help="take alerts from Alertmanager: one incident a group")
    add = parser.add_argument
    add(
        "--address",
        type=address,
        default=address(ADDRESS),
        metavar="HOST:PORT",
        help=f"where to listen (default: {ADDRESS}); beyond this machine only with a token",
    )
    add("--token-file", default="", metavar="FILE", help="whoever posts must send what stands in it as a bearer token")
    add(
        "--check",
        action="store_true",
        help="look at the node of a new incident, when it is this one or one of the inventory, and attach what is found",
    )
    add("--print", choices=("systemd",), dest="print_", help="print a unit file for running this, and stop")


def address(text: str) -> tuple[str, int]:
    """Where to listen. ValueError for what is no HOST:PORT."""
    host, _, port = text.rpartition(":")
    if not (port.isascii() and port.isdecimal() and int(port) <= 65_535):
        raise ValueError(text)
    return host.strip("[]") or "127.0.0.1", int(port)


address.__name__ = "address such as 127.0.0.1:9196"  # argparse names the type in its complaint
