"""The secrets of the Slack app: from the environment, or from files that only their owner reads."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from knowledge.errors import ConfigError

if TYPE_CHECKING:
    from pathlib import Path

    from assistant.config import Settings

LONGEST = 1_000  # characters of a secret


class Tokens(NamedTuple):
    """Never shown, never logged."""

    bot: str
    app: str = ""  # for Socket Mode
    signing: str = ""  # for HTTP


def tokens(settings: Settings, *, http: bool) -> Tokens:
    """Those that are needed. ConfigError that names what is missing, or why a file cannot be used."""
    s = settings.slack
    bot = _secret("slack_bot_token", s.bot_token, s.bot_token_file, "xoxb-")
    if http:
        return Tokens(bot, signing=_secret("slack_signing_secret", s.signing_secret, s.signing_secret_file))
    return Tokens(bot, app=_secret("slack_app_token", s.app_token, s.app_token_file, "xapp-"))


def _secret(key: str, given: str, file: Path | None, begins: str = "") -> str:
    variable = f"GPUDIAG_{key.upper()}"
    found, where = given, variable
    if not found and file is not None:
        found, where = _read(file), str(file)
    if not found:
        raise ConfigError(
            f"{key} is not set", hint=f"{variable}, or {key}_file in config.toml; docs/slack.md says where to get it"
        )
    if not found.isascii() or not found.isprintable() or " " in found or not found.startswith(begins):
        shape = f" (they begin with {begins})" if begins else ""
        raise ConfigError(f"what {where} holds is no {key.replace('_', ' ')}{shape}")
    return found


def _read(file: Path) -> str:
    try:
        if file.stat().st_mode & 0o022:
            raise ConfigError(f"{file} can be changed by others", hint=f"chmod go-w {file}")
        with file.open(encoding="utf-8") as opened:
            return opened.read(LONGEST).strip()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{file} cannot be read: {getattr(error, 'strerror', None) or 'it is no text'}") from error
