"""The inventory as a page: machines, how each is reached, groups."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from assistant.nodes import folded
from knowledge.language import Text

if TYPE_CHECKING:
    from assistant.inventory.model import Hosts, Node
    from assistant.render.sheet import Sheet


def chosen(hosts: Hosts, said: Sequence[str]) -> list[Node]:
    """The machines that `said` names: machines, aliases, sets of them, groups; all without any. UnknownNameError."""
    from assistant.session.nodeset import expand, is_set
    from knowledge.errors import UsageError

    if not said:
        return list(hosts.nodes.values())
    out: dict[str, Node] = {}
    for word in said:
        group = hosts.groups.get(word.removeprefix("@"))
        if group is not None:
            names: Sequence[str] = group
        else:
            try:
                names = expand(word) if is_set(word) else (word,)
            except ValueError as error:
                raise UsageError(str(error)) from None
        for name in names:
            node = hosts.find(name)
            out[node.name] = node
    return list(out.values())


def page(hosts: Hosts, nodes: Sequence[Node], lang: str, where: str) -> Sheet:
    """The sheet. `where` an inventory is looked for, when there is none."""
    from assistant.render.sheet import Fields, Heading, Paragraph, Sheet, Table

    def t(en: str, zh: str) -> str:
        return Text(en, zh).in_(lang)

    title = t("Machines", "机器清单")
    data = {
        "file": hosts.file or None,
        "hosts": [_plain(n, hosts) for n in nodes],
        "groups": {name: list(members) for name, members in hosts.groups.items()},
    }
    if not hosts.file:
        said = t(f"There is no inventory: {where} would be one.", f"没有机器清单：可在 {where} 中建立。")
        return Sheet(title, (Paragraph(said),), data)
    header = (
        t("machine", "机器"),
        t("reached", "连接方式"),
        t("also called", "别名"),
        "GPU",
        t("labels", "标签"),
        t("line", "行"),
    )
    rows = tuple(
        (
            n.name, _way(n), ", ".join(n.aliases), "" if n.gpus is None else str(n.gpus),
            ", ".join(f"{k}={v}" for k, v in n.labels.items()), n.place.rpartition(":")[2],
        )
        for n in nodes
    )  # fmt: skip
    kept = [i for i in range(len(header)) if i in (0, 1) or any(r[i] for r in rows)]
    parts: list[Any] = [Paragraph(hosts.file)]
    if rows:
        parts.append(Table(tuple(header[i] for i in kept), tuple(tuple(r[i] for i in kept) for r in rows)))
    if not hosts.nodes:
        parts.append(Paragraph(t("It lists no machine.", "其中没有任何机器。")))
    if hosts.groups:
        groups = tuple((name, f"{folded(members)} ({len(members)})") for name, members in hosts.groups.items())
        parts += [Heading(t("Groups", "分组")), Fields(groups)]
    return Sheet(title, tuple(parts), data)


def _way(node: Node) -> str:
    """How a machine is reached, in a few words: ``ssh ops@10.0.3.12 port 2222 via bastion``."""
    how = node.how
    target = str(how.get("address") or how.get("pod") or (f"-l {how['selector']}" if "selector" in how else node.name))
    user = f"{how['user']}@" if "user" in how else ""
    namespace = f"{how['namespace']}/" if "namespace" in how else ""
    words = [node.via, f"{namespace}{user}{target}"]
    for key, said in (("port", "port {}"), ("jump", "via {}"), ("partition", "partition {}"), ("job", "job {}"),
                      ("container", "container {}"), ("context", "context {}"), ("sudo", "sudo")):  # fmt: skip
        if how.get(key):
            words.append(said.format(how[key]))
    return " ".join(words)


def _plain(node: Node, hosts: Hosts) -> dict[str, Any]:
    groups = [name for name, members in hosts.groups.items() if node.name in members]
    return {
        "name": node.name, "via": node.via, "reach": dict(node.how), "aliases": list(node.aliases), "gpus": node.gpus,
        "labels": dict(node.labels), "groups": groups, "place": node.place,
    }  # fmt: skip
