"""Who speaks in a line of a system log: a program of what happened to it, or one that passes on what people write.

A chat, a mail, a greeting at login or a record of commands only mentions a fault. What such a program writes is never taken
for the fault itself; every other program may be a job, whose own words are: ``bash`` is what systemd calls one that a script starts.
"""

from __future__ import annotations

import re

from knowledge.lazy import lazy

# slackbot[1300]: posted: "run 8 died with CUDA out of memory"     postfix/cleanup[910]: ... Subject: [ALERT] nfs: server ...
# pam_motd[1300]: If nvidia-smi says "Unable to determine ..."     ansible-command[1300]: Invoked with _raw_params=journalctl ...
# node_exporter[900]: metric="xid_79_total 0" help="GPU has fallen off the bus count"
_HEARSAY = lazy(
    r"(?i)(?:slack|mattermost|discord|telegram|rocketchat|zulip|irc|weechat|chatops|dingtalk|feishu|lark|wecom)[\w.-]*"
    r"|(?:chat|jira|wiki|git|ops|alert|hu|help|on-?call)-?bot|(?:postfix|exim|sendmail|dovecot|opensmtpd|msmtp|mailx?)\d?(?:[/-].*)?"
    r"|pam_\w+|(?:update-|dynamic-)?motd[\w.-]*|wall|write|login|agetty|su|sudo|doas|sshd(?:-session)?|polkitd"
    r"|ansible-\w+|auditd?|audisp\w*|snoopy"
    r"|(?:node|blackbox|snmp|process|textfile)[_-]exporter|prometheus|alertmanager|grafana(?:-server)?"
)
# Agents that speak for a driver, in sentences of their own.
_AGENTS = lazy(
    r"(?i)(?:slurm|nvidia|nv-|dcgm|kube|docker|containerd|cri-?o|podman|klog|node-problem|k3s|rke2|pbs_|lsf)[\w.-]*|.*(?:gpu|nvsm|npd|fabricmanager).*"
)
# What stands ahead of a fault that somebody writes about.
_TALK = lazy(
    r"(?i)\b(?:if|whenever|reminder|remember|todo|fyi|docs?|wiki|runbook|faq|looks? like|(?:search|watch|look)(?:ing)? for|meaning of"
    r"|posted|wrote|e\.g\.|for example|such as|pattern|regex|help=|subject:|title:)"
    r"|如果|提醒|文档|例如|含义"
)
# What a program puts ahead of an output that it passes on: its level, its place, the key of the field.
#     ERROR: ...     [WARN] ...     check.py:12: ...     level=error msg="...
_MARKS = lazy(
    r"(?:[\[(]?(?i:trace|debug|info|notice|warn|warning|err|error|crit|critical|alert|fatal|emerg|fail|failed|failure|exception)[\])]?(?:\s*[:|-])?\s+"
    r"|\[[^\]]{1,80}\][: ]*|(?:[\w./@-]{1,30} ){0,2}[\w./@-]{1,60}(?:\(\))?: +|(?:ts|time|level|caller|source|logger|component)=\S+ +"
    r"|(?:msg|message|err|error|output|stderr|log)=[\"']?|\([\w-]{1,40}\) CMDOUT \(|nvidia-smi (?:says|said|output|failed)?:? *|[-*!✗✘]+ +){0,8}"
)
_ENDS = lazy(r"\s*(?:$|[.:,;!(\[|\"'\\)])")
# 2026-11-28T10:00:09.120+00:00 dev-1 slackbot[1300]: text        Nov 28 10:00:09 dev-1 pam_motd[1300]: text
_HEAD = lazy(
    r"(?:[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d(?:\.\d{1,9})?|\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d{1,9})? ?(?:Z|[+-]\d\d:?\d\d)?)"
    r" [\w.-]{1,80} ([\w./@-]{1,80})(?:\[\d{1,9}\])?: "
)

# {"__REALTIME_TIMESTAMP":"1764324009120000","SYSLOG_IDENTIFIER":"slackbot","MESSAGE":"posted: run 8 died with ..."}
_FIELD = lazy(r"\"SYSLOG_IDENTIFIER\" ?: ?\"([^\"]{1,80})\"")
_OPENS = lazy(r"(?i)(?:reminder|fyi|todo|posted|asked|wrote|said|quote|note to self|提醒)\b")


def hearsay(tag: str) -> bool:
    """True for a program of a system log that passes on what people write, or names things that did not happen."""
    return bool(tag) and _HEARSAY.fullmatch(tag) is not None


def hearsay_line(text: str) -> bool:
    """True when `text` is a line of a system log, or a record of the journal, in which such a program or a person writes."""
    found = _FIELD.search(text) if text.startswith("{") else _HEAD.match(text)
    return found is not None and (hearsay(found[1]) or _OPENS.match(text, found.end()) is not None)


def reports(tag: str, message: str, found: re.Match[str], *, named: bool) -> bool:
    """Whether the program `tag` reports what `found` says in its `message`, rather than writes about it.

    An agent of the driver speaks in sentences of its own. Any other program may print what a tool of the driver said: as the
    message itself, or with the device `named`.
    """
    if hearsay(tag):
        return False
    if _AGENTS.fullmatch(tag):
        return True
    ahead = message[: found.start()]
    if _TALK.search(ahead):
        return False
    return named or (_MARKS.fullmatch(ahead) is not None and _ENDS.match(message, found.end()) is not None)
