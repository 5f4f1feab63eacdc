"""Real ssh servers on loopback, each with host keys, settings and ports of its own; as whoever runs the tests."""

from __future__ import annotations

import os
import pwd
import socket
import subprocess
import time
from dataclasses import dataclass, field
from pathlib import Path

from probes.remote.reach import Reach
from tests.components import component


def free_port() -> int:
    """A port of loopback that nobody has at this moment."""
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return int(s.getsockname()[1])


@dataclass
class Sshd:
    """One server, and the settings of a client that knows its key. `start` before use, `stop` after."""

    folder: Path
    settings: str = ""  # more lines of sshd_config
    port: int = field(default_factory=free_port)
    child: subprocess.Popen[bytes] | None = None

    def start(self) -> Sshd:
        """Make keys where there are none, start, and wait until it listens. Skips the test where there is no sshd."""
        sshd = component("sshd")
        self.folder.mkdir(parents=True, exist_ok=True)
        for name in ("host_key", "user_key"):
            if not (self.folder / name).exists():
                self.new_key(name)
        (self.folder / "authorized_keys").write_text((self.folder / "user_key.pub").read_text())
        if os.geteuid() == 0:
            Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)  # privilege separation asks for it
        config = self.folder / "sshd_config"
        config.write_text(
            f"Port {self.port}\nListenAddress 127.0.0.1\nHostKey {self.folder}/host_key\nPidFile none\nUsePAM no\nStrictModes no\n"
            f"AuthorizedKeysFile {self.folder}/authorized_keys\nPasswordAuthentication no\nKbdInteractiveAuthentication no\n"
            f"PermitRootLogin yes\nUseDNS no\n{self.settings}\n"
        )
        self.child = subprocess.Popen([sshd, "-D", "-e", "-f", str(config)], stderr=(self.folder / "log").open("ab"))
        until = time.monotonic() + 20
        while time.monotonic() < until and self.child.poll() is None:
            with socket.socket() as s:
                if s.connect_ex(("127.0.0.1", self.port)) == 0:
                    self.know()
                    return self
            time.sleep(0.02)
        raise RuntimeError((self.folder / "log").read_text())

    def new_key(self, name: str) -> None:
        """Another key pair under that name."""
        (self.folder / name).unlink(missing_ok=True)
        words = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "", "-f", str(self.folder / name)]
        subprocess.run(words, check=True, stdin=subprocess.DEVNULL)

    def know(self) -> None:
        """Let the client know the host key that is there now."""
        key = (self.folder / "host_key.pub").read_text()
        (self.folder / "known_hosts").write_text(f"[127.0.0.1]:{self.port} {key}")
        (self.folder / "ssh_config").write_text(
            f"Host *\n  UserKnownHostsFile {self.folder}/known_hosts\n  GlobalKnownHostsFile none\n  IdentityFile {self.folder}/user_key\n"
            f"  IdentitiesOnly yes\n  User {pwd.getpwuid(os.geteuid()).pw_name}\n  StrictHostKeyChecking no\n"
            f"Host gpu-*\n  HostName 127.0.0.1\n  Port {self.port}\n"
        )

    def reach(self, name: str = "gpu-01", **more: object) -> Reach:
        """The way to it, through the client's settings."""
        return Reach(name, ssh_config=str(self.folder / "ssh_config"), **more)  # type: ignore[arg-type]

    def stop(self) -> None:
        """End the server; sessions live on."""
        if self.child is not None:
            self.child.terminate()
            self.child.wait()
