"""Whether another machine can be looked at from here: the way to it, what runs there, who we are, what each probe sees."""

from __future__ import annotations

from time import perf_counter
from typing import TYPE_CHECKING

from assistant.doctor import INSTALL, Checkup, Row, reach, rights_by, sources
from knowledge.language import NO_TEXT, Text
from knowledge.text import excerpt

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from assistant.config import Settings
    from assistant.inventory.model import Node
    from assistant.machine import Wish
    from probes.remote.remote_host import RemoteHost
    from probes.runner import Progress
    from rules.model import Rule

SNAPSHOTS = (3, 8)  # what the collectors are written for; files, listings and commands need 3.6
LIMIT = 255  # characters of what another machine calls itself
_SUDO = Text(
    "sudo = true in the inventory, where `sudo -n` is allowed there", "若该机允许 `sudo -n`，在清单中设置 sudo = true"
)
# Root has nothing to gain from sudo: what is denied to it is denied to the container that it is in.
_NODE = Text("reach the node itself rather than a container on it", "直接连接节点本身，而不是其上的容器")


def checkup(
    settings: Settings, other: Node, wish: Wish, rules: Sequence[Rule], on_progress: Callable[[Progress], None] | None = None
) -> Checkup:  # fmt: skip
    """Everything that can be told about `other`. One that cannot be reached is told with what to do about it."""
    from assistant import machine
    from probes.live import probes
    from probes.remote import ConnectError

    begun = perf_counter()
    way = f"{other.via} {other.reach.target}"
    try:
        with machine.line(settings, other.reach, wish.budget, wish.again) as far:
            took = perf_counter() - begun
            rows = [
                Row("reached", True, Text(f"{way}, in {took:.2f} s", f"{way}，用时 {took:.2f} 秒")),
                _itself(far), _python(far), _clock(far), _tools(far),
            ]  # fmt: skip
            more = _SUDO if far.whoami.uid else _NODE
            rights = rights_by(lambda name: far.read(f"/proc/{name}").text, far.whoami.uid, more)
            look = machine.over(far, wish, on_progress, lang=settings.output.lang)
    except ConnectError as error:
        return Checkup((Row("reached", False, error.why, error.advice),), (), (), other.name)
    if look.broken:
        rows.append(Row("line", False, look.ended))
    seen = tuple(sources(look.results, probes(), rules, more))
    return Checkup(tuple(rows), tuple(rights), seen, other.name, reach(look.results, probes(), rules))


def _itself(far: RemoteHost) -> Row:
    who = far.whoami
    name, user = excerpt(far.hostname, LIMIT) or "?", excerpt(who.user, LIMIT) or "?"
    inside = (
        Text(f", within a container ({who.container})", f"，位于容器内（{who.container}）")
        if who.container
        else NO_TEXT
    )
    return Row("itself", True, Text(f"calls itself {name}; we are {user} (uid {who.uid}){inside.en}",
                                    f"自称 {name}；当前用户 {user}（uid {who.uid}）{inside.zh}"))  # fmt: skip


def _python(far: RemoteHost) -> Row:
    version = tuple(int(n) for n in far.python.split(".") if n.isdigit())
    if version >= SNAPSHOTS:
        return Row("python", True, Text(f"{far.reach.python}: {far.python}"))
    return Row(
        "python", False,
        Text(f"{far.reach.python}: {far.python}, and most readings need 3.8 or newer", f"{far.reach.python}：{far.python}，多数读数需要 3.8 或更新版本"),
        Text('python = "/usr/bin/python3.9" in the inventory names another', '在清单中用 python = "/usr/bin/python3.9" 指定其他解释器'),
    )  # fmt: skip


def _clock(far: RemoteHost) -> Row:
    offset, error = far.clock_offset.ns / 1e9, far.clock_offset.error / 1e9
    fine = abs(offset) <= 1.0 + error
    way = Text("ahead of", "快") if offset > 0 else Text("behind", "慢")
    return Row(
        "clock", True if fine else None,
        Text(f"{abs(offset):.3f} s {way.en} this machine's, give or take {error:.3f} s", f"比本机{way.zh} {abs(offset):.3f} 秒（误差 {error:.3f} 秒）"),
        NO_TEXT if fine else Text("look at time synchronisation on both (chronyc tracking, timedatectl)", "请检查两台机器的时间同步（chronyc tracking、timedatectl）"),
    )  # fmt: skip


def _tools(far: RemoteHost) -> Row:
    there = far.which(sorted(INSTALL))
    gone = [name for name in sorted(INSTALL) if name not in there]
    en, zh = ", ".join(there) or "none", "、".join(there) or "无"
    lacking = Text(f"; not there: {', '.join(gone)}", f"；没有：{'、'.join(gone)}") if gone else NO_TEXT
    return Row("tools", True if there else None, Text(en + lacking.en, zh + lacking.zh))
