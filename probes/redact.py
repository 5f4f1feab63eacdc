"""Pseudonyms for what names people and machines, the same for the same name everywhere in a bundle.

Replaced: host and user names, pods, containers and jobs, IP and MAC addresses, e-mail addresses, UUIDs, GUIDs and
serial numbers, and arguments of programs; passwords and tokens become ``***``. Kept, because a diagnosis needs them and they tell nothing of a
site: PCI addresses, process ids, times, versions, models, codes, counters. A pseudonym has the shape
of what it stands for, so that every parser reads it; it is a keyed hash, so that the same key gives
the same pseudonyms in the bundles of a whole fleet and nobody without the key can try names.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import pairwise

from knowledge.record import dataclass
from probes.host import CallKind, Reply

_SHORTEST = 3  # characters of a name that is looked for in running text: shorter ones are parts of words
# Names that are words of this field: replacing them everywhere would garble every log.
_WORDS = frozenset("""
root nobody daemon bin sys sync mail www-data messagebus systemd-network systemd-resolve systemd-timesync sshd dbus syslog nvidia
localhost kernel gpu node host server master worker main python python3 bash user users admin ubuntu centos rocky debian docker
containerd kubelet slurm slurmd munge none null true false default unknown x86_64 aarch64 train test data work job home cuda nccl
""".split())  # noqa: SIM905  # fmt: skip
_HEX = r"[0-9a-fA-F]"
_UUID = rf"{_HEX}{{8}}-{_HEX}{{4}}-{_HEX}{{4}}-{_HEX}{{4}}-{_HEX}{{12}}"
_OCTET = r"(?:25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)"
# Jan  3 12:00:01 gpu-12 kernel: ...      2026-01-03T12:00:01.5+00:00 gpu-12 systemd[1]: ...
_SYSLOG = re.compile(
    r"(?m)^(?:[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d|\d{4}-\d\d-\d\dT[\d:.,]{8,18}(?:Z|[+-]\d\d:?\d\d)?) ([\w.-]{1,255}) [\w./-]{1,80}(?:\[\d+\])?:"
)
_HOST_FIELD = re.compile(
    r'(?i)"(?:host|hostname|node|node_?name|machine|fqdn|instance|_HOSTNAME|node_desc)"\s*:\s*"([\w.-]{1,255})(?: [^"]*)?"'
)
_HOST_ENV = re.compile(
    r'(?i)\b(?:(?:MASTER_ADDR|HOSTNAME|SLURMD_NODENAME|NODE_NAME)(?:=|"?\s?:\s?"?)|(?:node|host|rdzv[-_]endpoint|nodelist)=)["\']?([A-Za-z][\w.-]{0,254})'
)
_USER_FIELD = re.compile(r'(?i)"(?:user|username|owner|SLURM_JOB_USER)"\s*:\s*"([\w.@-]{1,64})"')
_USER_PATH = re.compile(r"/(?:home|Users)/([\w.-]{1,64})(?=[/\s\"':,]|$)")
# filer7:/export/ml /mnt/ml nfs4 ...    ... - nfs4 filer7:/export/ml rw    device filer7:/export/ml mounted on ...
_FILE_SERVER = re.compile(
    r"(?m)(?:\bdevice |\b(?:nfs4?|cifs|smb3?) |(?:^|(?<=[\"\n]))(?=\S+ /\S* (?:nfs4?|cifs|smb3?) ))(?://)?([A-Za-z][\w.-]{1,254})(?=:/|/)"
)
_USER_OPTION = re.compile(r"(?i)\b(?:username|user|logname|ruser)=([A-Za-z_][\w.@-]{0,63})")
# Where programs of every system name who: sshd, PAM, sudo, Slurm, LDAP, keys, listings of files, processes and jobs.
_USER_LINE = re.compile(
    r"(?m)\b(?:Accepted|Failed) [\w/-]{1,40} for (?:invalid user )?([A-Za-z_][\w.-]{0,63}) from |(?i:\b(?:for|of|by) user) ([A-Za-z_][\w.-]{0,63})(?=[\s(,:]|$)"
    r"|\bCRON\[\d+\]: \(([A-Za-z_][\w.-]{0,63})\) |\bname=([A-Za-z_][\w.-]{0,63}), UID=|\bsubmitted by ([A-Za-z_][\w.-]{0,63})(?=[\s,.]|$)"
    r"|(?<![\w.-])([A-Za-z_][\w.-]{0,63}) {1,12}(?:pts/|tty)\d{1,4} "
    r"|\bsudo(?:\[\d+\])?:\s{1,20}([A-Za-z_][\w.-]{0,63}) : |\bUserId=([A-Za-z_][\w.-]{0,63})\(|\b(?:uid|cn)=([A-Za-z_][\w.-]{0,63}),\s?\w{1,10}="
    r"|\bssh-[\w-]{2,20} [A-Za-z0-9+/=]{4,} ([A-Za-z_][\w.-]{0,63})@|(?<![\w/~])~([A-Za-z_][\w.-]{0,63})(?=/)|(?i:[A-Z]:\\{1,2}Users\\{1,2})([A-Za-z_][\w.-]{0,63})(?=\\)"
    r"|(?<![\w-])[-dlbcps](?:[-r][-w][-xsStT]){3}[.+@]?\s{1,8}\d{1,9}\s{1,4}([A-Za-z_][\w.-]{0,63})\s{1,20}\S{1,64}\s{1,20}\d"
    r"|(?<![\w.-])([A-Za-z_][\w.+-]{0,63})\s{1,12}\d{1,9}\s{1,8}\d{1,4}\.\d\s{1,8}\d{1,3}\.\d\s{1,12}\d{1,12}\s{1,12}\d{1,12}\s"
    r"|(?<!\w)\d{1,12}(?:_\d{1,8})?\s{1,20}\S{1,64}\s{1,20}\S{1,64}\s{1,20}([A-Za-z_][\w.-]{0,63})\s{1,20}(?:R|PD|CG|CD|F|S|CF|TO|OOM)\s{1,20}\d"
)
_USER_BY_ID = re.compile(
    r'"[1-9]\d{3,9}"\s*:\s*"([A-Za-z_][\w.@-]{0,63})"'
)  # "1000": "alice"; services have smaller ids
_WORKLOAD = re.compile(
    r'\b(?:POD_NAME|POD_NAMESPACE|SLURM_JOB_NAME|TORCHELASTIC_RUN_ID)(?:=|"\s*:\s*")([\w.-]{1,253})'
    r'|"(?:pod|pod_name|namespace|container_name|job_name)"\s*:\s*"([\w.-]{1,253})"'
)
# Serial Number                         : 1650522003820     <serial>165...</serial>     "nvmlDeviceGetSerial": "165..."
_SERIAL = re.compile(r'(?i)(serial(?: number|_number|number)?(?:\s*:\s*|>|"\s*:\s*"|\()\s*)([A-Z0-9]{6,40})\b')
# gpu-12:4242:4242 [0] NCCL INFO    Linux gpu-12 5.15.0-1    NodeName=gpu-12    http://prom-01:9090/    ops@gpu-12:    from gpu-12 port 22
_HOST_LINE = re.compile(
    r"(?m)(?<![\w.-])([A-Za-z][\w.-]{0,253}):\d{1,8}:\d{1,8} \[\d{1,4}\] NCCL |^Linux ([A-Za-z][\w.-]{0,253}) \d+\.\d+"
    r"|\b(?:NodeName|NodeHostName|NodeAddr|BatchHost|nodeName|NodeList|SLURM_(?:JOB_)?NODELIST|SLURMD_NODENAME)[=:]\s?\"?([A-Za-z][\w.-]{0,253})"
    r"|\b[a-z][a-z0-9+]{1,9}://(?:[\w.-]{1,64}@)?([A-Za-z][\w.-]{0,253})(?=[:/\s\"'?]|$)"
    r"|\b[a-z_][\w-]{0,31}@([A-Za-z][\w.-]{0,253}):|\b(?:from|to) (?:host )?([A-Za-z][\w.-]{0,253})(?: \(\d|:\d| port \d)"
    r"|(?<![\w.-])([A-Za-z][\w.-]{0,253}): (?:Name or service not known|Temporary failure in name resolution|nodename nor servname|No address associated)"
    r"|(?i:\bresolve (?:host|hostname|address)):? '?([A-Za-z][\w.-]{0,253})|^PING ([A-Za-z][\w.-]{0,253}) \(|\bassigned \S{1,200} to ([A-Za-z][\w.-]{0,253})(?=\s|$)"
    r"|(?<![\w.-])([A-Za-z][\w.-]{0,253})<\d{2,5}>|\brank ?\d{1,6} on ([A-Za-z][\w.-]{0,253})|'([A-Za-z][\w.-]{0,253}) (?:mlx\d|hfi|HCA)"
    r"|\bsrun: error: ([A-Za-z][\w.-]{0,253}):|^([A-Za-z][\w.-]{0,253}): (?=NVRM: |\[ {0,8}\d+\.\d+\] )|^<\d{1,3}>1 \S{1,40} ([A-Za-z][\w.-]{0,253}) |^Node:\s{1,20}([A-Za-z][\w.-]{0,253})/\d"
    r"|(?<![\w\\\\])(?:\\\\){1,2}\\\\([A-Za-z][\w.-]{0,253})(?=\\\\)"
)
# A name below a domain: db-prod.corp.example. Endings that are those of files, modules and units as well are not here.
_DOMAINS = (
    "com net org edu gov mil int internal local localdomain corp lan intra intranet example test arpa eu cloud site"
)
_COUNTRIES = "de fr uk nl ch se fi dk pl cz jp cn kr sg au ca br ru tw hk il eu"
_QUALIFIED = re.compile(
    rf"(?i)(?<![\w./@-])(?:[A-Za-z0-9](?:[A-Za-z0-9-]{{0,62}})\.){{1,6}}(?:{'|'.join(_DOMAINS.split())})(?![\w-]|\.\w|\()"
    rf"|(?<![\w./@-])(?:[A-Za-z0-9](?:[A-Za-z0-9-]{{0,62}})\.){{2,6}}(?:{'|'.join(_COUNTRIES.split())})(?![\w-]|\.\w|\()"
)
# Names of the public net that stand in everybody's logs.
_PUBLIC = re.compile(
    r"(?:.*\.)?(?:nvidia|github|githubusercontent|pytorch|huggingface|kernel|python|pypi|ubuntu|debian|redhat|centos|docker|gnu|freedesktop"
    r"|sourceforge|kubernetes|systemd|intel|amd|openssh|anaconda|mellanox|prometheus|grafana)\.(?:com|org|net)|example\.(?:com|org|net)"
)
# /data/users/alice/run    /scratch/bsmith    where people have folders of their own beside /home
_HOMELIKE = re.compile(
    r"(/(?:home|homes|Users|users|user|usr/people|people|scratch|staff|students|members|nethome|work|u)/)(?!(?:shared?|public|common|tmp|local|projects?"
    r"|data|models?|datasets?|software|apps?|slurm|nvidia)(?=[/\s\"':,]|$))([A-Za-z_][\w.-]{0,63})(?=[/\s\"':,)\]]|$)"
)
# --password=hunter2    --hf-token abc    token: abc    "api_key": "abc"    <password>abc</password>    https://user:password@host/
_NAME = r"(?:pass(?:word|wd|phrase|code)?|pwd(?!\W{1,5}/)|psk|secret|credentials?|(?:access[_-]|auth[_-]|session[_-])?token|(?:api|secret|access|account|private|signing|munge)[_-]?key(?:[_-]id)?|client-key-data|_auth)"
_VALUE = r"""(?!\*)(?:[^\s"'&,;<>\\]|\\[^\s"'&,;])+"""
_SECRET = re.compile(rf"""(?i)({_NAME}(?:\\?["'])?(?:[ \t]?[=:]|>)[ \t]?(?:\\?["'])?){_VALUE}""")
_SECRET_OPTION = re.compile(
    rf"""(?i)((?<![\w-])--?[\w-]{{0,40}}(?:pass(?:word|wd|phrase)?|secret|token|api-?key|access-?key|credentials?)(?:\\?["'])?,?\s{{1,4}}(?:\\?["'])?)(?!-){_VALUE}"""
)
# the password is hunter2    requirepass hunter2: with a digit, for a word would be one of a sentence
_SECRET_WORD = re.compile(
    rf"""(?i)(\b(?:\w{{0,20}}pass(?:word|wd|phrase)?|masterauth|[\w-]{{0,20}}psk)(?:\s(?:is|was))?\s{{1,4}})(?=\S{{0,60}}\d)(?=\S{{6}}){_VALUE}"""
)
# munge_key=..., "auth": "...", wandb_key='...': what ends so may be anything, unless it is long and of letters and digits
_SECRET_LONG = re.compile(
    r"""(?i)((?<![A-Za-z])(?:[\w-]{0,40}[_-])?(?:key|auth|cookie|signature|login)(?:\\?["'])?(?:[ \t]?[=:][ \t]?|[ \t])(?:\\?["'])?)(?=[A-Za-z+/_-]{0,60}\d)[A-Za-z0-9+/_-]{20,}={0,2}(?![\w.])"""
)
_SECRET_HEX = re.compile(r"(?i)(\b(?:key|token|secret)\b[^\n:=]{0,60}[:=]\s?)[0-9a-f]{32,}(?![\w-])")
# sshpass -p hunter2    ipmitool -U admin -P hunter2    curl -u admin:hunter2: programs whose short options carry one
_SHORT_OPTION = re.compile(
    r"""(\b(?:sshpass|ipmitool|docker|podman|nerdctl|helm|mysql\w*|mariadb\w*|psql|redis-cli|ldap\w+|curl|smbclient|snmp\w+|mongo\w*|rclone|bmcweb|racadm)\b[^\n|;]{0,200}?\s(?:-[pPwac]\s?|(?:-u|--user)[ =]["']?[^\s:"']{1,64}:)["']?)"""
    r"""(?![-*])[^\s"',;]{4,}"""
)
_HEADER = re.compile(
    r"(?i)((?:\bAuthorization(?:\\?[\"'])?\s?[:=]\s?(?:\\?[\"'])?(?:[A-Za-z][\w-]{1,30}\s{1,4})?|(?:\b(?:Bearer|Basic|Token|Negotiate|Digest|ApiKey)(?=\s{1,4}(?:\S{0,60}\d|\S{24}))"
    r"|\b(?:Set-)?Cookie:|\bX-[\w-]{0,30}(?:Key|Token|Signature):)\s{1,4}))(?!\*)[A-Za-z0-9_.~+/=:%-]{8,}(?:;[^\r\n\"']{0,500})?"
)
_QUERY = re.compile(
    r"(?i)([?&;](?:sig|signature|sign|key|code|x-amz-signature|x-amz-security-token|x-goog-signature)=)(?!\*)[^\s\"'&]+"
)
_CREDENTIALS = re.compile(r"(?<=://)[^\s/@:]{0,128}:[^\s/@]{1,256}(?=@)")
# Tokens that are known by how they begin, wherever they stand; the bodies of keys; the paths of webhooks.
_TOKEN = re.compile(
    r"(?<![A-Za-z0-9])(?:hf_[A-Za-z0-9]{16,}|gh[opusr]_[A-Za-z0-9]{20,}|github_pat_\w{20,}|gl(?:pat|ptt|rt|dt)-[\w-]{16,}|(?:AKIA|ASIA|AROA|AIDA)[A-Z0-9]{12,}"
    r"|xox[a-z]-[\w-]{8,}|xapp-[\w-]{8,}|sk-[\w-]{16,}|(?:sk|pk|rk)_(?:live|test)_\w{8,}|nvapi-[\w-]{16,}|AIza[\w-]{20,}|ya29\.[\w.-]{16,}|npm_[A-Za-z0-9]{16,}"
    r"|pypi-[\w-]{16,}|dckr_pat_[\w-]{16,}|AGE-SECRET-KEY-1[A-Z0-9]{16,}|SG\.[\w-]{16,}\.[\w-]{16,}|hvs\.[\w-]{16,}|glsa_\w{16,}|dop_v1_[a-f0-9]{16,}|wandb_v1_\w{16,}|(?:gsk|r8|lin_api|shp(?:at|ss|ca))_[A-Za-z0-9]{16,}"
    r"|eyJ[\w-]{8,}\.[\w-]{4,}(?:\.[\w-]*)?|[A-Za-z]{2,8}[_-]?[0-9a-f]{32}(?![0-9A-Za-z]))"
)
# What looks like chance: sixteen letters and digits of both cases without a sign between them, and what goes on around it.
_CHANCE = re.compile(r"[A-Za-z0-9+/_-]{16,}={0,2}")
_RUN = re.compile(r"[A-Za-z0-9]{16,}")
_NAMED = re.compile(r"_{0,2}Z[A-Z0-9]|_{1,2}R[A-Z]")  # a function as C++ and Rust write it
_CHANGES = (
    0.36  # of neighbours that are of another kind (upper, lower, digit): 0.6 by chance, 0.3 in names of functions
)
_KEY_BLOCK = re.compile(r"(-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY-----)[A-Za-z0-9+/=\s\\:,.-]{1,16384}?(-----END|\Z)")
_WEBHOOK = re.compile(
    r"(?i)(\bhttps?://(?:hooks\.slack(?:-gov)?\.com/(?:services|workflows|triggers)/|(?:canary\.|ptb\.)?discord(?:app)?\.com/api/webhooks/|[\w.-]{1,100}\.webhook\.office\.com/webhookb2/"
    r"|[\w.-]{1,100}/hooks/|events\.pagerduty\.com/integration/|api\.telegram\.org/bot))[^\s\"'<>]+"
)


@dataclass(frozen=True, slots=True)
class _Shape:
    """A kind of name that is known by how it looks."""

    kind: str
    pattern: re.Pattern[str]
    alias: Callable[[str, bytes], str]


def _uuid(text: str, digest: bytes) -> str:
    h = digest.hex()
    made = f"{h[:8]}-{h[8:12]}-{h[12:16]}-{h[16:20]}-{h[20:32]}"
    return made.upper() if text.upper() == text and text.lower() != text else made


def _ipv4(text: str, digest: bytes) -> str:
    # 198.18.0.0/15 is set aside for benchmarks (RFC 2544): no site's own address
    return text if text.startswith(("127.", "0.0.0.0", "255.")) else f"198.{18 + digest[0] % 2}.{digest[1]}.{digest[2]}"


def _mac(text: str, digest: bytes) -> str:
    # locally administered, unicast
    return text if set(text) <= set("0:fF") else ":".join(["02", *(f"{b:02x}" for b in digest[: text.count(":")])])


def _guid(text: str, digest: bytes) -> str:
    sign = ":" if ":" in text else ""
    made = digest.hex()[:16]
    body = sign.join(made[i : i + 4] for i in range(0, 16, 4))
    return f"0x{made}" if text.startswith("0x") else body


def _ipv6(_: str, digest: bytes) -> str:
    h = digest.hex()
    return f"fd00::{h[:4]}:{h[4:8]}:{h[8:12]}"


_SHAPES = (
    _Shape("uuid", re.compile(rf"(?<![0-9a-zA-Z]){_UUID}(?![0-9a-zA-Z])"), _uuid),
    _Shape("mail", re.compile(r"\b[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63}){1,5}\b"), lambda _, d: f"user-{d.hex()[:6]}@example.org"),
    _Shape("guid", re.compile(rf"(?<![0-9a-zA-Z:])(?:{_HEX}{{4}}:){{3}}{_HEX}{{4}}(?![0-9a-zA-Z:])|\b0x{_HEX}{{16}}\b"), _guid),
    _Shape("mac", re.compile(rf"(?<![0-9a-zA-Z:])(?:{_HEX}{{2}}:){{5}}{_HEX}{{2}}(?![0-9a-zA-Z:])"), _mac),
    _Shape("ipv6", re.compile(rf"(?<![0-9a-zA-Z:.])(?=[0-9a-fA-F:]*::|(?:{_HEX}{{1,4}}:){{7}})(?:fe80|fd|fc|2){_HEX}{{0,3}}:[0-9a-fA-F:]{{2,34}}(?![0-9a-zA-Z:.])"), _ipv6),
    _Shape("ipv4", re.compile(rf"(?<![\w.])(?:{_OCTET}\.){{3}}{_OCTET}(?![\w.])(?!\.\d)"), _ipv4),
)  # fmt: skip


class Redactor:
    """Replaces names; counts how many different ones it replaced."""

    def __init__(self, key: bytes) -> None:
        """`key` is secret and of any length; the same key gives the same pseudonyms."""
        self._key = key
        self._names: dict[str, str] = {}  # what was learned -> its pseudonym
        self._short: dict[
            str, str
        ] = {}  # those that are replaced only where a host is named: they may be parts of words
        self._seen: set[tuple[str, str]] = set()
        self._pattern: re.Pattern[str] | None = None

    @property
    def replaced(self) -> frozenset[str]:
        """The names that were replaced so far."""
        return frozenset(name for _, name in self._seen)

    def learn(self, texts: Iterable[str], host: str = "") -> None:
        """Take up the names that stand in `texts` where names stand; they are then replaced wherever they stand."""
        if host and is_word(host) and host.lower() not in _WORDS:
            self._short[host] = f"node-{self._digest('node', host).hex()[:6]}"
        found = names_in(texts, host)
        for name, kind in found:
            if name not in self._names:
                self._names[name] = f"{kind}-{self._digest(kind, name).hex()[:6]}"
                self._pattern = None

    def text(self, text: str) -> str:
        """`text` with pseudonyms."""
        text = without_secrets(text)
        text = _SERIAL.sub(lambda m: m[1] + self._serial(m[2]), text)
        text = _HOMELIKE.sub(self._home, text)
        text = _QUALIFIED.sub(self._qualified, text)
        if self._short:
            for pattern in (_SYSLOG, _HOST_FIELD, _HOST_ENV, _HOST_LINE):
                text = pattern.sub(self._where, text)
        for shape in _SHAPES:
            text = shape.pattern.sub(lambda m, s=shape: self._alias(s, m[0]), text)  # type: ignore[misc]  # bound now
        if self._names:
            if self._pattern is None:
                longest = sorted(self._names, key=lambda n: (-len(n), n))
                self._pattern = re.compile(rf"(?<![\w-])(?:{'|'.join(map(re.escape, longest))})(?![\w-])")
            text = self._pattern.sub(self._name, text)
        return text

    def host(self, name: str) -> str:
        """The pseudonym of a name that is known to be a host's."""
        return self._short.get(name) or self.text(name)

    def _where(self, match: re.Match[str]) -> str:
        """A place where a host is named: its whole text, with a short name replaced."""
        index = next((i for i, group in enumerate(match.groups(), 1) if group), 0)
        alias = self._short.get(match[index] or "") if index else None
        if alias is None:
            return match[0]
        self._seen.add(("name", match[index]))
        begin, end = match.start(index) - match.start(), match.end(index) - match.start()
        return match[0][:begin] + alias + match[0][end:]

    def _home(self, match: re.Match[str]) -> str:
        if match[2].lower() in _WORDS or match[2] in self._names:  # the latter get their pseudonym below
            return match[0]
        self._seen.add(("name", match[2]))
        return f"{match[1]}user-{self._digest('user', match[2]).hex()[:6]}"

    def _qualified(self, match: re.Match[str]) -> str:
        if match[0] in self._names or _PUBLIC.fullmatch(match[0].lower()):
            return match[0]
        self._seen.add(("name", match[0]))
        return f"node-{self._digest('node', match[0].lower()).hex()[:6]}"

    def _name(self, match: re.Match[str]) -> str:
        self._seen.add(("name", match[0]))
        return self._names[match[0]]

    def _alias(self, shape: _Shape, text: str) -> str:
        alias = shape.alias(text, self._digest(shape.kind, text.lower()))
        if alias != text:
            self._seen.add((shape.kind, text.lower()))
        return alias

    def _serial(self, text: str) -> str:
        """As many digits and letters, each kind where it stood."""
        self._seen.add(("serial", text))
        stream = self._digest("serial", text) + self._digest("serial2", text)
        return "".join(
            str(b % 10) if c.isdigit() else chr((65 if c.isupper() else 97) + b % 26)
            for c, b in zip(text, stream, strict=False)
        )

    def _digest(self, kind: str, text: str) -> bytes:
        return hmac.new(self._key, f"{kind}\0{text}".encode("utf-8", "surrogatepass"), hashlib.sha256).digest()


def names_in(texts: Iterable[str], host: str = "") -> list[tuple[str, str]]:
    """The names that stand in `texts` where names stand, each with its kind: node, user, work. Words of the field are none."""
    found = list(_hosts(host))
    for text in texts:
        for pattern, kind in ((_SYSLOG, "node"), (_HOST_LINE, "node"), (_HOST_FIELD, "node"), (_HOST_ENV, "node"), (_FILE_SERVER, "node"),
                              (_USER_FIELD, "user"), (_USER_PATH, "user"), (_USER_OPTION, "user"), (_USER_LINE, "user"), (_USER_BY_ID, "user"),
                              (_WORKLOAD, "work")):  # fmt: skip
            for match in pattern.finditer(text):
                name = next((g for g in match.groups() if g), "")
                found += _hosts(name) if kind == "node" else [(name.rstrip("."), kind)]
    return [(name, kind) for name, kind in dict.fromkeys(found) if not is_word(name)]


def shapes() -> tuple[tuple[str, re.Pattern[str]], ...]:
    """What names people and machines by how it looks: kind and pattern; of a serial number the second group is the number."""
    return (*((s.kind, s.pattern) for s in _SHAPES), ("serial", _SERIAL))


def without_secrets(text: str) -> str:
    """`text` with passwords and tokens masked: by how they begin, by the name before them, or in an address."""
    text = _KEY_BLOCK.sub(r"\1***\2", text)
    for pattern in (
        _WEBHOOK,
        _HEADER,
        _SECRET,
        _SECRET_OPTION,
        _SHORT_OPTION,
        _SECRET_WORD,
        _SECRET_LONG,
        _SECRET_HEX,
        _QUERY,
    ):
        text = pattern.sub(r"\1***", text)
    text = _TOKEN.sub("***", _CREDENTIALS.sub("***", text))
    return _CHANCE.sub(
        lambda m: m[0] if _NAMED.match(m[0]) or not any(map(by_chance, _RUN.findall(m[0]))) else "***", text
    )


def by_chance(word: str) -> bool:
    """Whether a word of letters and digits looks drawn and not named: both cases and digits, changing all the time."""
    kinds = [c.isdigit() * 2 + c.isupper() for c in word]
    mixed = min(kinds.count(kind) for kind in (0, 1, 2)) >= 2
    changes = sum(one != other for one, other in pairwise(kinds))
    return mixed and changes >= _CHANGES * len(word)


def is_word(name: str) -> bool:
    """Whether a name is none of a site's: a word of the field, a number, or too short to be told from a part of a word."""
    return bool(
        name.lower() in _WORDS or len(name) < _SHORTEST or name.isdigit() or _SHAPES[-1].pattern.fullmatch(name)
    )


def _hosts(name: str) -> Iterator[tuple[str, str]]:
    """A host name, and its first part when it is qualified. Names of the public net are nobody's."""
    name = name.rstrip(".")
    if name and _PUBLIC.fullmatch(name.lower()):
        return
    if name:
        yield name, "node"
    if "." in name and not name.replace(".", "").isdigit():
        yield name.partition(".")[0], "node"


def redacted(
    host: str, replies: Sequence[Reply], key: bytes = b"", others: Sequence[bytes] = ()
) -> tuple[str, list[Reply], list[bytes], frozenset[str]]:
    """Host name, replies and `others` with pseudonyms, and the names that were replaced.

    Calls are renamed like outputs: a replay asks for what it reads. Without a `key` a random one is used and
    forgotten.
    """
    redactor = Redactor(key or os.urandom(32))
    texts = [_decoded(r.data) for r in replies]
    more = [_decoded(data) for data in others]
    redactor.learn([*texts, *more, *(_decoded(r.stderr) for r in replies)], host)

    def hide(text: str) -> bytes:
        return redactor.text(text).encode("utf-8", "surrogateescape")

    out = [
        replace(
            reply,
            call=tuple(redactor.text(word) for word in reply.call),
            data=hide(_without_arguments(text) if reply.kind is CallKind.SNAPSHOT else text),
            stderr=hide(_decoded(reply.stderr)),
            detail=redactor.text(reply.detail),
        )
        for reply, text in zip(replies, texts, strict=True)
    ]
    return redactor.host(host), out, [hide(text) for text in more], redactor.replaced


def _decoded(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")


def _without_arguments(text: str) -> str:
    """A snapshot in which programs keep their names and the names of their options, and lose the values."""
    if '"cmdline"' not in text:
        return text
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        return text
    return json.dumps(_stripped(document), indent=1)


def _stripped(value: object) -> object:
    if isinstance(value, list):
        return [_stripped(item) for item in value]
    if not isinstance(value, dict):
        return value
    out = {}
    for name, item in value.items():
        if name == "cmdline" and isinstance(item, list):
            item = [_argument(str(word), i) for i, word in enumerate(item)]
        out[name] = _stripped(item) if name != "cmdline" else item
    return out


def _argument(word: str, place: int) -> str:
    if place == 0:
        return word.rpartition("/")[2]
    if word.startswith("-"):
        name, sign, _ = word.partition("=")
        if not word.startswith("--") and len(word) > 2 and not sign:
            return f"{word[:2]}..."  # -pPASSWORD
        return f"{name}{sign and '=...'}"
    return word.rpartition("/")[2] if word.endswith((".py", ".sh")) else "..."
