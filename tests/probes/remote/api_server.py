"""As much of a Kubernetes API server as `kubectl get pods` and `kubectl exec` talk to: one namespace, commands run here.

Exec is the WebSocket protocol v5.channel.k8s.io (KEP 4006; k8s.io/streaming): each message begins with the number of its
channel (0 standard input, 1 output, 2 errors, 3 how it ended), and 255 closes the channel that follows it.
"""

from __future__ import annotations

import base64
import hashlib
import json
import struct
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import IO, Any
from urllib.parse import parse_qs, urlparse

PODS = {"gpudiag-a1": "gpu-12", "gpudiag-b2": "gpu-13"}
_RESOURCES = [{"name": "pods", "singularName": "pod", "namespaced": True, "kind": "Pod", "verbs": ["get", "list"], "shortNames": ["po"]},
              {"name": "pods/exec", "singularName": "", "namespaced": True, "kind": "PodExecOptions", "verbs": ["create", "get"]}]  # fmt: skip
_DISCOVERY: dict[str, dict[str, Any]] = {
    "/api": {"kind": "APIVersions", "versions": ["v1"]},
    "/apis": {"kind": "APIGroupList", "apiVersion": "v1", "groups": []},
    "/api/v1/namespaces/tools": {"kind": "Namespace", "apiVersion": "v1", "metadata": {"name": "tools"}},
    "/api/v1": {"kind": "APIResourceList", "groupVersion": "v1", "resources": _RESOURCES},
}


def pod(name: str) -> dict[str, Any]:
    return {
        "kind": "Pod", "apiVersion": "v1", "metadata": {"name": name, "namespace": "tools", "labels": {"app": "gpudiag"}},
        "spec": {"nodeName": PODS[name], "containers": [{"name": "main", "image": "x"}]}, "status": {"phase": "Running"},
    }  # fmt: skip


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: Any) -> None:
        return

    def do_GET(self) -> None:
        url = urlparse(self.path)
        query, base = parse_qs(url.query), "/api/v1/namespaces/tools/pods"
        name, _, what = url.path.removeprefix(base).strip("/").partition("/")
        if url.path in _DISCOVERY:
            self._say(200, _DISCOVERY[url.path])
        elif url.path == base:
            fields = dict(f.split("=", 1) for f in query["fieldSelector"][0].split(","))
            found = [pod(n) for n, node in PODS.items() if node == fields["spec.nodeName"]]
            self._say(200, {"kind": "PodList", "apiVersion": "v1", "metadata": {}, "items": found})
        elif not url.path.startswith(base) or name not in PODS:
            self._refuse(404, "NotFound", f'pods "{name}" not found')
        elif what == "exec" and self.server.closed:  # type: ignore[attr-defined]
            self._forbid()
        elif what == "exec":
            self._exec(query["command"])
        else:
            self._say(200, pod(name))

    def do_POST(self) -> None:  # the older way, SPDY
        if self.server.closed:  # type: ignore[attr-defined]
            self._forbid()
        else:
            self._refuse(400, "BadRequest", "only WebSockets are spoken here")

    def _forbid(self) -> None:
        self._refuse(403, "Forbidden", 'pods "gpudiag-a1" is forbidden: User "me" cannot create resource "pods/exec"')

    def _refuse(self, code: int, reason: str, words: str) -> None:
        self._say(
            code,
            {
                "kind": "Status",
                "apiVersion": "v1",
                "status": "Failure",
                "reason": reason,
                "code": code,
                "message": words,
            },
        )

    def _say(self, code: int, what: dict[str, Any]) -> None:
        data = json.dumps(what).encode()
        self.send_response(code)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    # --- exec -----------------------------------------------------------------------------

    def _exec(self, command: list[str]) -> None:
        key = self.headers["Sec-WebSocket-Key"] + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
        self.send_response(101)
        self.send_header("Upgrade", "websocket")
        self.send_header("Connection", "Upgrade")
        self.send_header("Sec-WebSocket-Accept", base64.b64encode(hashlib.sha1(key.encode()).digest()).decode())
        self.send_header("Sec-WebSocket-Protocol", "v5.channel.k8s.io")
        self.end_headers()
        self.wfile.flush()
        self.close_connection = True
        lock = threading.Lock()
        pipe = subprocess.PIPE
        child = subprocess.Popen([sys.executable, *command[1:]], stdin=pipe, stdout=pipe, stderr=pipe, bufsize=0)
        assert child.stdin is not None
        readers = [
            threading.Thread(target=self._relay, args=(n, s, lock)) for n, s in ((1, child.stdout), (2, child.stderr))
        ]
        for reader in readers:
            reader.start()
        threading.Thread(target=self._feed, args=(child.stdin,), daemon=True).start()
        for reader in readers:
            reader.join()
        ended = {"metadata": {}, "status": "Success"} if child.wait() == 0 else {
            "metadata": {}, "status": "Failure", "reason": "NonZeroExitCode", "message": f"command terminated with exit code {child.returncode}",
            "details": {"causes": [{"reason": "ExitCode", "message": str(child.returncode)}]},
        }  # fmt: skip
        self._send(2, b"\x03" + json.dumps(ended).encode(), lock)
        self._send(8, struct.pack(">H", 1000), lock)

    def _relay(self, channel: int, stream: IO[bytes], lock: threading.Lock) -> None:
        while part := stream.read(1 << 15):
            self._send(2, bytes([channel]) + part, lock)

    def _send(self, kind: int, data: bytes, lock: threading.Lock) -> None:
        size = (
            bytes([len(data)])
            if len(data) < 126
            else struct.pack(">BH", 126, len(data))
            if len(data) < 1 << 16
            else struct.pack(">BQ", 127, len(data))
        )
        try:
            with lock:
                self.wfile.write(bytes([0x80 | kind]) + size + data)
        except OSError:
            return

    def _feed(self, stdin: IO[bytes]) -> None:
        """What comes from kubectl, until it closes its channel or leaves."""
        try:
            while len(head := self.rfile.read(2)) == 2:
                size = head[1] & 127
                if size > 125:
                    size = int.from_bytes(self.rfile.read(2 if size == 126 else 8), "big")
                mask, data = self.rfile.read(4), self.rfile.read(size)
                words = bytes(a ^ mask[n % 4] for n, a in enumerate(data))
                if head[0] & 15 == 8 or words[:2] == b"\xff\x00":
                    break
                if head[0] & 15 in (0, 1, 2) and words[:1] == b"\x00":
                    stdin.write(words[1:])
        except (OSError, ValueError):
            pass
        stdin.close()


class ApiServer(ThreadingHTTPServer):
    """A server on a port of its own, with the file that leads kubectl to it. `closed`: exec is forbidden."""

    daemon_threads = True
    closed = False

    def __init__(self, folder: Path) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.kubeconfig = folder / "kubeconfig"
        self.kubeconfig.write_text(json.dumps({
            "apiVersion": "v1", "kind": "Config", "current-context": "lab",
            "clusters": [{"name": "lab", "cluster": {"server": f"http://127.0.0.1:{self.server_address[1]}"}}],
            "contexts": [{"name": "lab", "context": {"cluster": "lab", "user": "me"}}], "users": [{"name": "me", "user": {}}],
        }))  # fmt: skip
        threading.Thread(target=self.serve_forever, daemon=True).start()
