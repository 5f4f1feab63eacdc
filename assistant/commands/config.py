"""``gpudiag config``: the settings in force and where each came from."""

from __future__ import annotations

import argparse

from assistant.output import write

NAME = "config"
HELP = "show the settings in force and where each came from"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """``config show``."""
    parser.add_argument("action", choices=("show",), help="show: every setting, its value and its origin")


def run(args: argparse.Namespace) -> int:
    """Print the settings."""
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
