"""Settings: flags over ``GPUDIAG_*`` over the user's file over ``/etc/gpudiag/config.toml``.

Read once per command and handed down as frozen sections; nothing below the command line
looks at the environment or at files for settings. Secrets, where a setting is one, come
from the environment or a file and are never shown. Named tuples rather than dataclasses:
every command passes here, and making one costs a third.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from knowledge.errors import ConfigError, nearest_hint
from knowledge.language import LANGUAGES, Text

SYSTEM_FILE = Path("/etc/gpudiag/config.toml")
FORMATS = ("text", "json", "markdown", "html")
_PLATFORM: str = sys.platform  # through a name: the type checker would drop the branches of other platforms
NOT_SETTINGS = (
    "GPUDIAG_DEBUG",
    "GPUDIAG_LOG_FOLD",
    "GPUDIAG_PYTHON314_ROOT",
    "GPUDIAG_PYTHONS",
    "GPUDIAG_REQUIRE",
    "GPUDIAG_TORCH_PYTHON",
    "GPUDIAG_TRACE_SCANNER",
    "GPUDIAG_WEBHOOKS",
)  # read by the command line, the trace reader and the test suite themselves


class Option(NamedTuple):
    """One setting: its key in the files; the variable is ``GPUDIAG_`` and the key in capitals."""

    key: str
    kind: str  # choice, path, paths, text, count (above 0), days (0 and above), url
    default: str
    meaning: Text
    choices: tuple[str, ...] = ()
    secret: bool = False

    @property
    def variable(self) -> str:
        """Its environment variable."""
        return f"GPUDIAG_{self.key.upper()}"


OPTIONS: tuple[Option, ...] = (
    Option("lang", "choice", "auto", Text(
        "Language of answers; auto follows LC_ALL, LC_MESSAGES and LANG.",
        "回答所用的语言；auto 取自 LC_ALL、LC_MESSAGES 与 LANG。"), ("auto", *LANGUAGES)),
    Option("format", "choice", "text", Text("Shape of answers on stdout.", "标准输出上回答的格式。"), FORMATS),
    Option("color", "choice", "auto", Text(
        "Colour of text answers; auto means on a terminal without NO_COLOR.",
        "文本回答是否带颜色；auto 表示在终端上且未设置 NO_COLOR 时启用。"), ("auto", "always", "never")),
    Option("site_file", "path", "", Text(
        "Site file with changed thresholds, severities and suppressions.", "站点文件：修改阈值、级别与屏蔽项。")),
    Option("rule_packs", "paths", "", Text(
        "Rule packs laid over the shipped rules, in order.", "按顺序叠加在内置规则之上的规则包。")),
    Option("runbook_dirs", "paths", "", Text(
        "Folders of the site's own runbooks, in order; one of the same id stands in for a shipped one.",
        "站点自有处置手册所在的文件夹（按顺序）；同名手册取代内置手册。")),
    Option("host_root", "path", "", Text(
        "Where the machine's file system is mounted when gpudiag runs in a container, such as /host.",
        "在容器中运行时宿主机文件系统的挂载位置，例如 /host。")),
    Option("host_name", "text", "", Text(
        "Name of this machine in answers; empty means its own host name.",
        "回答中本机的名称；为空则使用其主机名。")),
    Option("inventory", "path", "", Text(
        "File of the machines that can be looked at from here; empty means inventory.toml in the user's folder of settings.",
        "可从本机查看的机器清单文件；为空则使用用户配置目录中的 inventory.toml。")),
    Option("policy_file", "path", "", Text(
        "File that says who may have what run on which machine, where people are not logged in here (Slack); empty means "
        "that nobody may.",
        "规定未登录本机的用户（Slack）可在哪些机器上运行什么的权限文件；为空则任何人都不允许。")),
    Option("state_dir", "path", "", Text(
        "Where it is remembered which calls hung; empty means the platform's folder for state.",
        "记录曾挂起的调用的位置；为空则使用平台的状态目录。")),
    Option("cache_dir", "path", "", Text(
        "Where compiled data files are kept; empty means the platform's cache folder.",
        "编译后数据文件的存放位置；为空则使用平台的缓存目录。")),
    Option("history_url", "url", "", Text(
        "Where checks are remembered: sqlite:////path or postgresql+psycopg://user@host/name; empty means history.db "
        "in the user's data folder, off means nowhere.",
        "历次检查的保存位置：sqlite:////路径 或 postgresql+psycopg://user@host/name；为空则使用用户数据目录中的 "
        "history.db，off 表示不保存。")),
    Option("history_days", "count", "30", Text(
        "Days that samples and runs are kept; events and findings are kept twelve times as long.",
        "采样与检查记录保留的天数；事件与发现保留其十二倍时间。")),
    Option("dialogue_days", "days", "7", Text(
        "Days that a conversation is remembered after its last turn; 0 means not at all.",
        "对话在最后一轮之后保留的天数；0 表示完全不保存。")),
    Option("gpu_hour_price", "text", "", Text(
        "What a GPU-hour costs, such as 2.10 EUR; empty means that reports of incidents count hours and no money.",
        "每 GPU 小时的价格，例如 2.10 EUR；为空则事件报告只计小时，不计金额。")),
    Option("slack_bot_token", "text", "", Text(
        "Token of the Slack app's bot (xoxb-...).", "Slack 应用的机器人令牌（xoxb-...）。"), secret=True),
    Option("slack_bot_token_file", "path", "", Text(
        "File that holds it.", "保存该令牌的文件。")),
    Option("slack_app_token", "text", "", Text(
        "App-level token for Socket Mode (xapp-...).", "Socket Mode 所用的应用级令牌（xapp-...）。"), secret=True),
    Option("slack_app_token_file", "path", "", Text(
        "File that holds it.", "保存该令牌的文件。")),
    Option("slack_signing_secret", "text", "", Text(
        "What Slack signs its requests with, where they come over HTTP.", "经 HTTP 接收请求时 Slack 的签名密钥。"), secret=True),
    Option("slack_signing_secret_file", "path", "", Text(
        "File that holds it.", "保存该密钥的文件。")),
    Option("slack_api", "url", "https://slack.com/api/", Text(
        "Address of Slack's Web API; GovSlack has another one.", "Slack Web API 的地址；GovSlack 使用另一地址。")),
    Option("llm_model", "text", "", Text(
        "Language model that may retell answers, as litellm names it, such as openai/qwen3-32b or ollama_chat/qwen3; empty means none.",
        "可转述回答的语言模型，按 litellm 的写法，例如 openai/qwen3-32b 或 ollama_chat/qwen3；为空则不使用。")),
    Option("llm_base", "url", "", Text(
        "Address of the model's server, such as http://127.0.0.1:8000/v1; needed for every model, hosted ones too.",
        "模型服务器的地址，例如 http://127.0.0.1:8000/v1；任何模型都必须设置，托管服务也不例外。")),
    Option("llm_hosts", "text", "", Text(
        "Hosts that llm_base may name beside this machine, between commas.", "除本机外 llm_base 可指向的主机，以逗号分隔。")),
    Option("llm_key_file", "path", "", Text(
        "File that holds the key of the model's server, and nothing else.", "只存放模型服务器密钥的文件。")),
    Option("llm_key", "text", "", Text(
        "The key itself; only from the environment, never from a file of settings.",
        "密钥本身；只能来自环境变量，不得写入配置文件。"), secret=True),
    Option("llm_python", "path", "", Text(
        "Python that has litellm, such as /opt/gpudiag-llm/bin/python; empty means the one that runs gpudiag.",
        "装有 litellm 的 Python，例如 /opt/gpudiag-llm/bin/python；为空则使用运行 gpudiag 的解释器。")),
    Option("llm_audience", "choice", "engineer", Text(
        "Whom a retold answer is written for.", "转述的回答面向的读者。"), ("operator", "engineer", "manager")),
    Option("llm_log_lines", "choice", "no", Text(
        "Whether some lines of logs go to the model, cleaned and with pseudonyms.",
        "是否将少量日志行（已清理并使用化名）发给模型。"), ("no", "yes")),
    Option("llm_deadline", "count", "20", Text(
        "Seconds that the model has for an answer; the answer of gpudiag itself never waits for it.",
        "模型作答的时限（秒）；gpudiag 自身的回答从不等待它。")),
    Option("llm_requests_per_minute", "count", "10", Text(
        "Requests to the model in a minute, over all processes of a user.", "每分钟发往模型的请求数，按用户的所有进程合计。")),
    Option("llm_tokens_per_day", "count", "200000", Text(
        "Tokens to and from the model in a day (UTC).", "每天（UTC）与模型往来的 token 数。")),
    Option("llm_dollars_per_day", "text", "1.00", Text(
        "US dollars that the model may cost in a day (UTC), where its price is known.",
        "在价格已知时，模型每天（UTC）可花费的美元数。")),
    Option("llm_price", "text", "", Text(
        "US dollars for a million tokens to and from the model, such as 0.15/0.60; empty means what litellm knows.",
        "每百万输入与输出 token 的美元价格，例如 0.15/0.60；为空则采用 litellm 所知的价格。")),
)  # fmt: skip


class Setting(NamedTuple):
    """A value in force, and where it came from."""

    option: Option
    value: str | tuple[str, ...]
    origin: str  # "flag", "GPUDIAG_LANG", a file, "default"

    @property
    def shown(self) -> str:
        """The value as `config show` prints it."""
        if self.option.secret and self.value:
            return "********"
        if self.option.kind == "url" and isinstance(self.value, str):
            return without_password(self.value)
        return self.value if isinstance(self.value, str) else os.pathsep.join(self.value)


class Output(NamedTuple):
    """How answers look."""

    lang: str = "en"
    format: str = "text"
    color: str = "auto"
    now: int = 0  # ns UTC, for ages; 0 leaves them out


class Rules(NamedTuple):
    """Which rules are in force beside the shipped ones."""

    site_file: Path | None = None
    packs: tuple[Path, ...] = ()


class Machine(NamedTuple):
    """How this machine is looked at."""

    root: str = ""
    name: str = ""
    state_dir: Path | None = None


class History(NamedTuple):
    """Where checks are remembered, and how long."""

    url: str = ""  # empty: the user's own file; "off": nowhere
    days: int = 30


class Dialogue(NamedTuple):
    """How long conversations are remembered."""

    days: int = 7  # after the last turn; 0: nothing is kept


class Llm(NamedTuple):
    """The language model that may retell answers; off without a name."""

    model: str = ""
    base: str = ""
    hosts: str = ""
    key_file: Path | None = None
    key: str = ""
    python: str = ""  # empty: this interpreter
    audience: str = "engineer"
    log_lines: bool = False  # whether some lines of logs go along
    deadline: int = 20  # seconds
    requests_per_minute: int = 10
    tokens_per_day: int = 200_000
    dollars_per_day: str = "1.00"
    price: str = ""  # in/out, US dollars a million tokens


class Slack(NamedTuple):
    """The bot: its secrets as they were given, or the files that hold them."""

    bot_token: str = ""
    app_token: str = ""
    signing_secret: str = ""
    bot_token_file: Path | None = None
    app_token_file: Path | None = None
    signing_secret_file: Path | None = None
    api: str = "https://slack.com/api/"


class Settings(NamedTuple):
    """Everything that is set, by section."""

    output: Output = Output()
    rules: Rules = Rules()
    machine: Machine = Machine()
    cache_dir: Path | None = None
    all: tuple[Setting, ...] = ()
    warnings: tuple[str, ...] = ()
    history: History = History()
    dialogue: Dialogue = Dialogue()
    inventory: Path | None = None  # the file of other machines, when it is not the usual one
    policy_file: Path | None = None  # who may have what run, where people are not logged in here
    runbook_dirs: tuple[Path, ...] = ()  # of the site's own runbooks
    gpu_hour_price: str = ""  # amount and currency; empty: none is known
    llm: Llm = Llm()
    slack: Slack = Slack()


def without_password(url: str) -> str:
    """`url` as it may be shown: a password in it is starred out."""
    head, mark, rest = url.partition("://")
    credentials, at, place = rest.rpartition("@")
    user, colon, _ = credentials.partition(":")
    return f"{head}{mark}{user}:********@{place}" if at and colon else url


def user_file() -> Path:
    """The user's own file, where the platform keeps such files.

    On Linux that is the XDG base directory specification's answer, written out: every
    command passes here, and platformdirs takes longer to import than `--version` may run.
    A test holds the two equal.
    """
    if _PLATFORM == "linux":
        base = os.environ.get("XDG_CONFIG_HOME", "").strip()
        return (Path(base) if base else Path.home() / ".config") / "gpudiag" / "config.toml"
    from platformdirs import user_config_path

    return user_config_path("gpudiag") / "config.toml"


def state_folder(settings: Settings) -> Path:
    """Where this machine's memory is kept.

    On Linux that is the XDG base directory specification's answer, written out as in `user_file`.
    """
    if settings.machine.state_dir:
        return settings.machine.state_dir
    if _PLATFORM == "linux":
        base = os.environ.get("XDG_STATE_HOME", "").strip()
        return (Path(base) if base else Path.home() / ".local" / "state") / "gpudiag"
    from platformdirs import user_state_path

    return user_state_path("gpudiag")


def load(
    flags: Mapping[str, str | None] | None = None,
    environ: Mapping[str, str] | None = None,
    files: tuple[Path, ...] | None = None,
    options: tuple[Option, ...] = OPTIONS,
) -> Settings:
    """The settings in force. `files` are read with the later one winning.

    Raises ConfigError that names every unknown key and every bad value at once.
    """
    environ = os.environ if environ is None else environ
    faults: list[str] = []
    found = {o.key: Setting(o, _typed(o, o.default), "default") for o in options}
    for path in (SYSTEM_FILE, user_file()) if files is None else files:
        _from_file(path, found, faults)
    for option in options:
        if raw := environ.get(option.variable):
            _set(found, option, raw, option.variable, faults)
        if raw := (flags or {}).get(option.key):
            _set(found, option, raw, "flag", faults)
    if faults:
        raise ConfigError("; ".join(faults), hint="gpudiag config show lists the settings and where they come from")
    return _sections(found, environ, _unknown_variables(environ, options))


def _from_file(path: Path, found: dict[str, Setting], faults: list[str]) -> None:
    try:
        raw = path.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        return
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror}") from error
    import tomllib

    try:
        data = tomllib.loads(raw.decode())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} is not TOML: {error}") from error
    for key, value in data.items():
        if key not in found:
            hint = nearest_hint(key, found)
            faults.append(f"{path}: unknown key {key!r}{f' ({hint})' if hint else ''}")
            continue
        if found[key].option.secret:  # a file of settings is shown, copied and kept under version control
            faults.append(
                f"{path}: {key} does not belong into a file of settings; set {found[key].option.variable} or {key}_file"
            )
            continue
        _set(found, found[key].option, value, str(path), faults, path.parent)


def _set(
    found: dict[str, Setting], option: Option, raw: Any, origin: str, faults: list[str], base: Path | None = None
) -> None:
    place = f"{origin}: " if origin != "flag" else ""
    many = option.kind == "paths"
    if isinstance(raw, str):
        value = _typed(option, raw)
    elif option.kind in ("count", "days") and isinstance(raw, int) and not isinstance(raw, bool):
        value = str(raw)
    elif many and isinstance(raw, list) and all(isinstance(item, str) for item in raw):
        value = tuple(raw)
    else:
        wanted = "a list of paths" if many else "a number" if option.kind in ("count", "days") else "a string"
        faults.append(f"{place}{option.key} is {wanted}, not {raw!r}")
        return
    if option.choices and value not in option.choices:
        faults.append(f"{place}{option.key} is {raw!r}, which is none of {', '.join(option.choices)}")
        return
    if option.kind in ("count", "days") and not _whole(value, least=int(option.kind == "count")):
        lowest = "above 0" if option.kind == "count" else "not below 0"
        faults.append(f"{place}{option.key} is a whole number {lowest}, not {raw!r}")
        return
    if base is not None and option.kind in ("path", "paths"):
        value = tuple(_under(base, v) for v in value) if isinstance(value, tuple) else _under(base, value)
    found[option.key] = Setting(option, value, origin)


def _whole(value: str | tuple[str, ...], least: int) -> bool:
    """Whether `value` is a whole number from `least` on (and no more digits than a column of days may have)."""
    return isinstance(value, str) and value.isascii() and value.isdigit() and len(value) <= 9 and int(value) >= least


def _typed(option: Option, raw: str) -> str | tuple[str, ...]:
    return tuple(p for p in raw.split(os.pathsep) if p) if option.kind == "paths" else raw


def _under(base: Path, raw: str) -> str:
    """A path of a file counts from that file's folder."""
    return str(base / Path(raw).expanduser()) if raw else raw


def _unknown_variables(environ: Mapping[str, str], options: tuple[Option, ...]) -> tuple[str, ...]:
    known = {o.variable for o in options} | set(NOT_SETTINGS)
    strange = sorted(name for name in environ if name.startswith("GPUDIAG_") and name not in known)
    return tuple(f"{name} is no setting and was ignored ({nearest_hint(name, known)})" for name in strange)


def _sections(found: Mapping[str, Setting], environ: Mapping[str, str], warnings: tuple[str, ...]) -> Settings:
    def text(key: str) -> str:
        value = found[key].value if key in found else ""
        return value if isinstance(value, str) else ""

    def path(key: str) -> Path | None:
        return Path(text(key)).expanduser() if text(key) else None

    lang = text("lang")
    packs = found["rule_packs"].value if "rule_packs" in found else ()
    books = found["runbook_dirs"].value if "runbook_dirs" in found else ()
    return Settings(
        Output(system_language(environ) if lang == "auto" else lang, text("format"), text("color"), time.time_ns()),
        Rules(path("site_file"), tuple(Path(p).expanduser() for p in packs)),
        Machine(text("host_root"), text("host_name"), path("state_dir")),
        path("cache_dir"),
        tuple(found.values()),
        warnings,
        History(text("history_url"), int(text("history_days") or 30)),
        Dialogue(int(text("dialogue_days") or 7)),
        path("inventory"),
        policy_file=path("policy_file"),
        runbook_dirs=tuple(Path(p).expanduser() for p in books),
        gpu_hour_price=text("gpu_hour_price"),
        llm=_llm(text, path("llm_key_file"), path("llm_python")),
        slack=Slack(
            text("slack_bot_token"),
            text("slack_app_token"),
            text("slack_signing_secret"),
            path("slack_bot_token_file"),
            path("slack_app_token_file"),
            path("slack_signing_secret_file"),
            text("slack_api"),
        ),
    )


def _llm(text: Callable[[str], str], key_file: Path | None, python: Path | None) -> Llm:
    return Llm(
        text("llm_model"), text("llm_base"), text("llm_hosts"), key_file, text("llm_key"), str(python or ""),
        text("llm_audience") or "engineer", text("llm_log_lines") == "yes", int(text("llm_deadline") or 20), int(text("llm_requests_per_minute") or 10),
        int(text("llm_tokens_per_day") or 200_000), text("llm_dollars_per_day"), text("llm_price"),
    )  # fmt: skip


def system_language(environ: Mapping[str, str]) -> str:
    """The language of the locale, in the order that POSIX gives its variables."""
    for name in ("LC_ALL", "LC_MESSAGES", "LANG"):
        if value := environ.get(name):
            return "zh" if value.lower().startswith("zh") else "en"
    return "en"
