"""``gpudiag config``: the settings in force and where each came from; the machines that can be looked at from here."""

from __future__ import annotations

import argparse

from assistant.output import write

NAME = "config"
HELP = "show the settings in force and where each came from, and the machines of the inventory"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """``config show``, ``config hosts``."""
    from assistant.inventory.target import names

    add = parser.add_argument
    add(
        "action", choices=("show", "hosts"),
        help="show: every setting, its value and its origin; hosts: the machines that can be looked at from here",
    )  # fmt: skip
    names(
        add(
            "machines",
            nargs="*",
            metavar="NAME",
            help="with hosts: only these machines, sets such as gpu[001-064], groups",
        )
    )
    add("--inventory", default="", metavar="FILE", help="with hosts: this file of machines")
    add("--names", action="store_true", dest="bare", help="with hosts: only the names, one a line")


def run(args: argparse.Namespace) -> int:
    """Print the settings, or the machines."""
    if args.action == "hosts":
        return _hosts(args)
    from knowledge.errors import UsageError

    if args.machines or args.inventory or args.bare:
        raise UsageError("names of machines, --inventory and --names belong to: gpudiag config hosts")
    return _show(args)


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
