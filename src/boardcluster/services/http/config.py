"""The configuration of the farm's servers and of its balancer, as text. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import resources

__all__ = [
    "BALANCER_TOOLS",
    "FARM_PORTS",
    "MODULE",
    "SERVER_TOOLS",
    "THREADS_MOST",
    "render_balancer",
    "render_compute",
    "render_server",
]

MODULE = "/usr/lib/nginx/modules/ngx_http_js_module.so"
"""What runs the page that computes, where Debian's package has it."""

FARM_PORTS = {"http-balancer": 8000, "http-server": 8001, "http-null": 8002}
"""Ports of the farm's parts; open only while a workload measures it."""

SERVER_TOOLS: Mapping[str, str] = {"/usr/sbin/nginx": "nginx libnginx-mod-http-js"}
"""What workers need, each program with its Debian packages."""

BALANCER_TOOLS: Mapping[str, str] = {"/usr/sbin/haproxy": "haproxy"}
"""What the master needs."""

THREADS_MOST = 64
"""Of a HAProxy, in one group: with more it refuses to start."""

_CONNECTIONS = 8192
_SERVER = """\
{user}daemon off;
worker_processes {cores};
worker_rlimit_nofile {files};
pid {root}/nginx.pid;
error_log {root}/error.log warn;
load_module {module};
events {{ worker_connections {connections}; }}
http {{
    access_log off;
    default_type application/octet-stream;
    sendfile on;
    tcp_nopush on;
    # A limit would end connections in the middle of a measurement.
    keepalive_requests 1000000000;
    keepalive_timeout 1h;
    client_body_temp_path {root}/temporary;
    proxy_temp_path {root}/temporary;
    fastcgi_temp_path {root}/temporary;
    uwsgi_temp_path {root}/temporary;
    scgi_temp_path {root}/temporary;
    js_path {root};
    js_import compute.js;
    server {{
        listen {address}:{port} backlog=4096;
        root {root};
        location /pages/ {{ }}
        location = /compute {{ js_content compute.page; }}
        location = /status {{ stub_status; }}
        location / {{ return 404; }}
    }}
}}
"""
_BALANCER = """\
global
    stats socket unix@haproxy.sock mode 600 level operator
    nbthread {cores}
    maxconn {connections}
{user}
defaults
    mode http
    option redispatch
    retries 3
    timeout connect {connect}
    timeout client {idle}
    timeout server {idle}
    timeout http-keep-alive {idle}
    default-server check inter {check} fall 3 rise 2

frontend farm
    bind {address}:{port} backlog 4096
    default_backend servers

backend servers
    balance roundrobin
{servers}
"""
_CONNECT_SECONDS = 1.0
_IDLE_SECONDS = 60.0
_CHECK_SECONDS = 0.2


def _milliseconds(seconds: float, dilation: float) -> str:
    return f"{round(seconds * 1000 * dilation)}ms"


def render_server(*, root: str, address: str, port: int, cores: int, user: str) -> str:
    """Return the configuration of the nginx of one worker.

    Args:
        root: the farm's folder, as nginx sees it.
        address: where it listens, and nowhere else.
        port: its port.
        cores: the node's cores, each of which gets a process.
        user: whom its processes become; empty if it is not started as root.
    """
    return _SERVER.format(
        user=f"user {user};\n" if user else "",
        root=root,
        address=address,
        port=port,
        cores=cores,
        module=MODULE,
        connections=_CONNECTIONS,
        files=2 * _CONNECTIONS,
    )


def render_balancer(
    servers: Mapping[str, str], *, address: str, port: int, cores: int, user: str, dilation: float
) -> str:
    """Return the configuration of HAProxy.

    Args:
        servers: each worker's address and port by its name.
        address: where it listens, and nowhere else.
        port: its port.
        cores: the master's cores.
        user: whom it becomes once it listens; empty to stay.
        dilation: by how much the nodes are slower than the boards they stand for.
    """
    return _BALANCER.format(
        user=f"    user {user}\n" if user else "",
        address=address,
        port=port,
        cores=min(cores, THREADS_MOST),
        connections=_CONNECTIONS,
        connect=_milliseconds(_CONNECT_SECONDS, dilation),
        idle=_milliseconds(_IDLE_SECONDS, dilation),
        check=_milliseconds(_CHECK_SECONDS, dilation),
        servers="\n".join(f"    server {name} {where}" for name, where in servers.items()),
    )


def render_compute(rounds: int) -> str:
    """Return the program of the page that computes, with so many digests one after the other."""
    text = resources.files(__package__).joinpath("compute.js").read_text(encoding="utf-8")
    return text.replace("ROUNDS", str(rounds))
