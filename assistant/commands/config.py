"""``gpudiag config``: the settings in force and where each came from; the machines that can be looked at; who may have what run."""

from __future__ import annotations

import argparse

from assistant.output import write

NAME = "config"
HELP = "show the settings in force and where each came from, the machines of the inventory, and who may have what run"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """``config show``, ``config hosts``, ``config rights``."""
    from assistant.inventory.target import names

    add = parser.add_argument
    add(
        "action", choices=("show", "hosts", "rights"),
        help="show: every setting, its value and its origin; hosts: the machines that can be looked at from here; "
        "rights: who may have what run on which of them from a chat",
    )  # fmt: skip
    names(
        add(
            "machines",
            nargs="*",
            metavar="NAME",
            help="with hosts: only these machines, sets such as gpu[001-064], groups",
        )
    )
    add("--inventory", default="", metavar="FILE", help="with hosts and rights: this file of machines")
    add("--names", action="store_true", dest="bare", help="with hosts: only the names, one a line")
    group = parser.add_argument_group("rights: what the policy says of one act of one person")
    ask = group.add_argument
    ask("--as", default="", dest="user", metavar="USER", help="the id of a person, as the chat has it: U024BE7LH")
    ask(
        "--group",
        action="append",
        default=[],
        metavar="ID",
        help="the id of a user group of that person; may be repeated",
    )
    ask("--guest", action="store_true", help="the person is a guest")
    ask("--external", action="store_true", help="the person belongs to another organisation")
    ask("--channel", default="", metavar="ID", help="where it is asked for; without it, in a channel of the list")
    names(ask("--node", default="", metavar="NAME", help="the machine"))
    ask("--act", default="", metavar="WHAT", help="a probe, test:NAME, step:RUNBOOK/STEP, check, collect or profile")
    ask("--privileged", action="store_true", help="the act needs privileges")


def run(args: argparse.Namespace) -> int:
    """Print the settings, or the machines."""
    from knowledge.errors import UsageError

    about = (
        args.user
        or args.group
        or args.guest
        or args.external
        or args.channel
        or args.node
        or args.act
        or args.privileged
    )
    if about and args.action != "rights":
        raise UsageError("--as, --node, --act and what goes with them belong to: gpudiag config rights")
    if args.action == "hosts":
        return _hosts(args)
    if args.machines or args.bare or (args.inventory and args.action != "rights"):
        raise UsageError("names of machines, --inventory and --names belong to: gpudiag config hosts")
    if args.action == "rights":
        if about and not (args.user and args.node and args.act):
            raise UsageError(
                "a ruling is about --as USER, --node NAME and --act WHAT", hint="without any, the policy is shown"
            )
        return _rights(args)
    return _show(args)


def _rights(args: argparse.Namespace) -> int:
    from pathlib import Path

    from assistant.render.sheet import show
    from assistant.rights import load
    from assistant.rights.pages import act_of, anywhere, asked, page

    settings = args.settings
    if args.inventory:
        settings = settings._replace(inventory=Path(args.inventory).expanduser())
    policy = load(settings)
    ruled = None
    if args.user:
        person = asked(args.user, args.group, args.channel, guest=args.guest, external=args.external)
        act = policy.meant(act_of(args.act, args.node, privileged=args.privileged))
        ruled = person, act, policy.decide(person, act, args.channel or anywhere(policy))
    write(show(page(policy, settings.output.lang, ruled), settings.output))
    return 0


def _hosts(args: argparse.Namespace) -> int:
    from assistant.config import user_file
    from assistant.inventory import NAME as FILE
    from assistant.inventory import load
    from assistant.inventory.pages import chosen, page
    from assistant.render.sheet import show

    hosts = load(args.settings, args.inventory)
    nodes = chosen(hosts, args.machines)
    if args.bare:
        write("".join(f"{node.name}\n" for node in nodes))
        return 0
    write(show(page(hosts, nodes, args.settings.output.lang, str(user_file().with_name(FILE))), args.settings.output))
    return 0


def _show(args: argparse.Namespace) -> int:
    from assistant.config import SYSTEM_FILE, Settings, user_file
    from assistant.render.sheet import Fields, Heading, Sheet, Table, show
    from knowledge.language import Text

    settings: Settings = args.settings
    lang = settings.output.lang

    def t(en: str, zh: str) -> str:
        return Text(en, zh).in_(lang)

    header = (t("key", "键"), t("value", "值"), t("from", "来源"))
    rows = tuple((s.option.key, s.shown or "-", _origin(s.origin, lang)) for s in settings.all)
    files = tuple(
        (str(p), t("read", "已读取") if p.is_file() else t("absent", "不存在")) for p in (SYSTEM_FILE, user_file())
    )
    data = {"settings": [{"key": s.option.key, "value": s.shown, "origin": s.origin} for s in settings.all]}
    page = Sheet(t("Settings", "设置"), (Table(header, rows), Heading(t("Files", "文件")), Fields(files)), data)
    write(show(page, settings.output))
    return 0


def _origin(origin: str, lang: str) -> str:
    from knowledge.language import Text

    return {"default": Text("default", "默认"), "flag": Text("flag", "命令行")}.get(origin, Text(origin)).in_(lang)
