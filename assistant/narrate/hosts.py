"""Which one server may be spoken to: the address that is set, when its host is on the list.

Nothing is guessed from a model's name: without `llm_base` nothing is sent, for hosted providers too. This machine itself
(127.0.0.0/8, ::1, localhost) needs no entry. A host is compared as it is written; an address in another spelling (127.1,
2130706433) is a name that stands on no list.
"""

from __future__ import annotations

import re
from ipaddress import ip_address
from urllib.parse import urlsplit

from assistant.narrate.reasons import NarrationError, Reason
from knowledge.language import Text
from knowledge.record import dataclass

_PORTS = {"http": 80, "https": 443}
_HOST = re.compile(r"[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?|[0-9a-f:.]{2,45}")


@dataclass(frozen=True, slots=True)
class Place:
    """Where the model is."""

    base: str  # as it is given to litellm
    host: str  # lower case, without brackets
    port: int
    encrypted: bool

    @property
    def here(self) -> bool:
        """Whether it is this machine."""
        return loopback(self.host)


def loopback(host: str) -> bool:
    """Whether `host` can only be this machine."""
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def listed(hosts: str) -> frozenset[str]:
    """The hosts of the setting: words between commas or spaces."""
    return frozenset(word.strip("[]").lower().rstrip(".") for word in re.split(r"[,\s]+", hosts) if word)


def place(base: str, hosts: str) -> Place:
    """The address `base`. NarrationError when it is none, or when its host is not on the list `hosts`."""
    found = _parsed(base)
    if not found.here and found.host not in listed(hosts):
        raise NarrationError(
            Reason.HOST, found.host,
            Text(f"The model's server {found.host} is not on the list of hosts: add it to llm_hosts.",
                 f"模型服务器 {found.host} 不在主机名单中：请把它加入 llm_hosts。"),
        )  # fmt: skip
    return found


def _parsed(base: str) -> Place:
    try:
        parts = urlsplit(base.strip())
        port = parts.port
    except ValueError:
        raise _not_an_address(base) from None
    host = (parts.hostname or "").rstrip(".")
    if parts.scheme not in _PORTS or not _HOST.fullmatch(host) or "@" in parts.netloc or parts.query or parts.fragment:
        raise _not_an_address(base)
    return Place(base.strip(), host, port or _PORTS[parts.scheme], parts.scheme == "https")


def _not_an_address(base: str) -> NarrationError:
    if not base.strip():
        return NarrationError(
            Reason.NOT_CONFIGURED, "llm_base is empty",
            Text("A model is set, and no address: set llm_base, such as http://127.0.0.1:8000/v1.",
                 "设置了模型，但没有地址：请设置 llm_base，例如 http://127.0.0.1:8000/v1。"),
        )  # fmt: skip
    return NarrationError(
        Reason.NOT_CONFIGURED, "llm_base is no address",
        Text("llm_base is no address that can be used: http or https, a host, a port, a path, and no password in it.",
             "llm_base 不是可用的地址：应为 http 或 https、主机、端口与路径，且不含密码。"),
    )  # fmt: skip
