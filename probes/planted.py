"""Secrets that nobody has, planted into text to count how many a redaction leaves: a hundred kinds, random values."""

from __future__ import annotations

import base64
import random
import string
from typing import NamedTuple

LETTERS = string.ascii_letters + string.digits


class Planted(NamedTuple):
    """A secret in the words that it stands in."""

    kind: str
    line: str
    secret: str


# {s}: letters and digits, {u}: upper case, {h} and {x}: hexadecimal, {p}: digits, {n}: a name of a person or machine, {b}: Base64
KINDS = {
    "hugging face": ("download with hf_{s} failed", "hf_{s}"), "github": ("remote: ghp_{s} is not valid", "ghp_{s}"),
    "github fine": ("token github_pat_{s}", "github_pat_{s}"), "gitlab": ("clone as glpat-{s}", "glpat-{s}"),
    "aws id": ("credentials AKIA{u} used", "AKIA{u}"), "aws key": ("AWS_SECRET_ACCESS_KEY={b}", "{b}"),
    "slack": ("posting as xoxb-12345-{s}", "{s}"), "slack webhook": ("POST https://hooks.slack.com/services/T0/B0/{s} 500", "{s}"),
    "discord webhook": ("https://discord.com/api/webhooks/12/{s}", "{s}"), "bearer": ("Authorization: Bearer {s}", "{s}"),
    "basic": ("authorization: basic {b}", "{b}"), "jwt": ("got eyJhbGciOiJI.{s}.{s}", "{s}"), "openai": ("OpenAI key sk-proj-{s}", "sk-proj-{s}"),
    "nvidia": ("NGC login nvapi-{s}", "nvapi-{s}"), "google": ("key AIza{s}{s}", "AIza{s}"), "npm": ("npm_{s} expired", "npm_{s}"),
    "pypi": ("upload with pypi-{s}", "pypi-{s}"), "stripe": ("sk_live_{s}", "sk_live_{s}"), "vault": ("hvs.{s} revoked", "hvs.{s}"),
    "password option": ("train.py --password {s} --lr 0.1", "{s}"), "token option": ("serve --hf-token {s} --port 8000", "{s}"),
    "password": ("password={s}", "{s}"), "json key": ('{{"api_key": "{s}"}}', "{s}"), "url password": ("postgres://app:{s}@db:5432/x", "{s}"),
    "query": ("GET /blob?sv=2024&sig={h} HTTP/1.1", "{h}"), "cookie": ("Set-Cookie: session={s}; Path=/", "{s}"),
    "header": ("X-Api-Key: {s}", "{s}"), "private key": ("-----BEGIN OPENSSH PRIVATE KEY-----\n{b}\n{b}\n-----END OPENSSH PRIVATE KEY-----", "{b}"),
    "connection string": ("AccountName=x;AccountKey={b};EndpointSuffix=core", "{b}"), "wandb": ("WANDB_API_KEY: {h}", "{h}"),
    "host": ("cannot connect to {n}.corp.example", "{n}"), "home": ("open /home/{n}/run.sh", "{n}"), "scratch": ("write /scratch/{n}/ckpt.pt", "{n}"),
    "users": ("read /data/users/{n}/tokens.bin", "{n}"), "mail": ("mail to {n}@corp.example", "{n}"), "nccl": ("{n}:41:90 [0] NCCL INFO Bootstrap", "{n}"),
    "file server": ("{n}:/export/ml /mnt/ml nfs4 rw 0 0", "{n}"), "url host": ("fetch http://{n}:9090/api", "{n}"),
    # forms of which a trial found none masked
    "sshpass": ("sshpass -p {s} ssh bmc", "{s}"), "curl user": ("curl -k -u root:{s} https://10.0.0.1/redfish", "{s}"), "mysql": ("MYSQL_PWD={s} mysql", "{s}"),
    "redis": ("requirepass {s}", "{s}"), "netrc": ("machine api.wandb.ai login user password {s}", "{s}"), "registry": ('{{"auths": {{"reg.x": {{"auth": "{b}"}}}}}}', "{b}"),
    "key id": ('"private_key_id": "{h}"', "{h}"), "groq": ("gsk_{s}", "gsk_{s}"), "replicate": ("r8_{s}", "r8_{s}"), "linear": ("lin_api_{s}", "{s}"),
    "namespace": ("Namespace(lr=0.1, wandb_key='{s}')", "{s}"), "xml": ("<password>{s}</password>", "{s}"), "odbc": ("Server=db;User Id=sa;Pwd={s};", "{s}"),
    "prose": ("the password is {s}", "{s}"), "ipmi": ("ipmitool -H 10.0.0.1 -U admin -P {s} sdr", "{s}"), "scheme": ("Authorization: ApiKey {s}", "{s}"),
    "login": ("wandb login {h}", "{h}"), "appended": ("wandb: Appending key for api.wandb.ai: {h}", "{h}"), "docker": ("docker login -u x -p {s} reg", "{s}"),
    "radio": ("wpa-psk {s}", "{s}"), "snmp": ("snmpwalk -v2c -c {s} switch1", "{s}"), "munge": ("MUNGE_KEY={b}", "{b}"), "twilio": ("SK{x}", "{x}"),
    "mailgun": ("key-{x}", "{x}"), "shop": ("shpat_{x}", "{x}"), "databricks": ("dapi{x}", "{x}"), "weak": ('{{"passwd": "qwerty{p}"}}', "qwerty{p}"),
    "public key": ("ssh-ed25519 AAAAC3 {n}@laptop", "{n}"), "slurm job": ("UserId={n}(1001) GroupId={n}(1001)", "{n}"), "sshd": ("Accepted publickey for {n} from 10.1.1.1 port 22", "{n}"),
    "sudo": ("sudo:   {n} : TTY=pts/0 ; COMMAND=/bin/ls", "{n}"), "session": ("session opened for user {n}(uid=1000)", "{n}"), "listing": ("drwxr-x--- 2 {n} users 4096 Jan 3 12:00 run", "{n}"),
    "ps": ("{n}  4242  0.0  0.1 12345 678 pts/0 S+ 12:00 0:00 python", "{n}"), "squeue": ("  4242 gpu train {n} R 1:00 1 gpu-9", "{n}"), "tilde": ("~{n}/run.sh", "{n}"),
    "work": ("/work/{n}/x", "{n}"), "capitals": ("{n}.HPC.CORP.LOCAL failed", "{n}"), "ssh": ("ssh: connect to host {n} port 22: refused", "{n}"),
    "resolver": ("getaddrinfo: {n}: Name or service not known", "{n}"), "ping": ("PING {n} (10.2.3.4) 56(84) bytes", "{n}"), "json node": ('"node": "{n}"', "{n}"),
    "pod": ("Node: {n}/10.1.2.3", "{n}"), "share": ("\\\\{n}\\share", "{n}"), "ldap": ("uid={n},ou=people,dc=corp", "{n}"), "windows": ("C:\\Users\\{n}\\x", "{n}"),
    "cron": ("CRON[123]: ({n}) CMD (/x)", "{n}"), "useradd": ("new user: name={n}, UID=1005", "{n}"), "who": ("{n} pts/3 2024-01-03 12:00", "{n}"),
    "submitted": ("job submitted by {n}", "{n}"), "environment": ("LOGNAME={n}", "{n}"), "rendezvous": ("--rdzv-endpoint={n}:29400", "{n}"), "socket": ("connecting to {n}<29500>", "{n}"),
    "rank": ("[rank3 on {n}] timeout", "{n}"), "node description": ("Lid 12 '{n} mlx5_0'", "{n}"), "srun": ("srun: error: {n}: task 3: Killed", "{n}"),
    "assigned": ("Successfully assigned default/x to {n}", "{n}"), "klog": ('node="{n}" msg="x"', "{n}"), "pdsh": ("{n}: NVRM: Xid", "{n}"), "static": ("   Static hostname: {n}", "{n}"),
}  # fmt: skip


def planted(count: int, seed: int) -> list[Planted]:
    """`count` secrets, of each kind in turn."""
    source = random.Random(seed)

    def some(letters: str, length: int) -> str:
        return "".join(source.choice(letters) for _ in range(length))

    found = []
    for number in range(count):
        kind = list(KINDS)[number % len(KINDS)]
        line, secret = KINDS[kind]
        values = {
            "s": some(LETTERS, 32), "u": some(string.ascii_uppercase + string.digits, 16), "h": some("0123456789abcdef", 40),
            "n": some(string.ascii_lowercase, 4) + "-" + some(string.ascii_lowercase, 6),
            "x": some("0123456789abcdef", 32), "p": some(string.digits, 4), "b": base64.b64encode(source.randbytes(30)).decode(),
        }  # fmt: skip
        found.append(Planted(kind, line.format(**values), secret.format(**values)))
    return found
