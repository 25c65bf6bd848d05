"""Let this machine's browser see the web pages of a running emulated cluster, also without root.

    python3 examples/web_proxy.py STATE_JSON [PORT]

Listens on 127.0.0.1 (default port 8118) as an HTTP proxy that sits in the network of the cluster's
master, so that the names and addresses of all nodes work. It ends with Ctrl-C, or by itself when
the cluster goes down. It forwards GET and HEAD only. Standard library only.
"""

import contextlib
import http.client
import http.server
import json
import os
import select
import socket
import sys
from pathlib import Path
from urllib.parse import urlsplit

FORWARDED = ("GET", "HEAD")
HOP_BY_HOP = {"connection", "keep-alive", "proxy-connection", "te", "trailer", "transfer-encoding"}


class Handler(http.server.BaseHTTPRequestHandler):
    """Hands one request on to a daemon and its answer back."""

    protocol_version = "HTTP/1.1"

    def parse_request(self) -> bool:
        """Refuse every method that is not forwarded, known or not."""
        if not super().parse_request():
            return False
        if self.command in FORWARDED:
            return True
        self.send_response(405)
        self.send_header("Allow", ", ".join(FORWARDED))
        self.send_header("Content-Length", "0")
        self.send_header("Connection", "close")  # a body that was not read must not be a request
        self.end_headers()
        return False

    def forward(self) -> None:
        """Forward the request; the browser follows redirects itself."""
        target = urlsplit(self.path)
        if target.scheme != "http" or not target.hostname:
            self.send_error(400, "use this address as an HTTP proxy, for example with curl -x")
            return
        # No body goes on: a daemon could take one for a further request, with another method.
        dropped = HOP_BY_HOP | {"content-length", "expect"}
        headers = {k: v for k, v in self.headers.items() if k.lower() not in dropped}
        path = target._replace(scheme="", netloc="").geturl() or "/"
        daemon = http.client.HTTPConnection(target.hostname, target.port or 80, timeout=60)
        with contextlib.closing(daemon):
            try:
                daemon.request(self.command, path, headers=headers)
                answer = daemon.getresponse()
                content = answer.read()
            except (OSError, http.client.HTTPException) as error:
                self.send_error(502, f"{target.netloc}: {error}")
                return
        self.send_response(answer.status, answer.reason)
        for name, value in answer.getheaders():
            if name.lower() not in HOP_BY_HOP | {"content-length", "date", "server"}:
                self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    do_GET = do_HEAD = forward  # noqa: N815  names of the base class


class Proxy(http.server.ThreadingHTTPServer):
    """Serves on a socket made elsewhere, for as long as a process lives."""

    daemon_threads = True

    def __init__(self, listening: int, process: int) -> None:
        super().__init__(("127.0.0.1", 0), Handler, bind_and_activate=False)
        self.socket.close()
        self.socket = socket.socket(fileno=listening)
        self.node = process

    def service_actions(self) -> None:
        """End when the node has ended."""
        if select.select([self.node], [], [], 0)[0]:
            sys.exit("the cluster is down")


def main() -> None:
    """Listen outside, then enter the master's namespaces and serve from there."""
    if sys.argv[1] == "--serve":
        Proxy(int(sys.argv[2]), int(sys.argv[3])).serve_forever()
    state = json.loads(Path(sys.argv[1]).read_text())
    master = state["nodes"][0]
    # A socket belongs to the network in which it was made, wherever its process goes.
    port = int(sys.argv[2]) if len(sys.argv) > 2 else 8118
    listening = socket.create_server(("127.0.0.1", port))
    process = os.pidfd_open(master["pid"])
    for descriptor in (listening.fileno(), process):
        os.set_inheritable(descriptor, True)
    for daemon in state["daemons"]:
        web = urlsplit(daemon["url"]).port
        sys.stderr.write(f"{daemon['name']:<16} http://{daemon['node']}:{web}\n")
    sys.stderr.write(f"proxy: http://127.0.0.1:{port}\n")
    user = ["-U", "--preserve-credentials"] if state["own_user"] else []
    command = ["nsenter", "-t", str(master["pid"]), *user, "-n", "-m", sys.executable]
    command += [str(Path(__file__).absolute())]  # entering a mount namespace changes the folder
    command += ["--serve", str(listening.fileno()), str(process)]
    os.execvp(command[0], command)  # noqa: S606  an argument list, no shell


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        main()
