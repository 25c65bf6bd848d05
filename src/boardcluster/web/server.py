"""Serves the dashboard: a free port, who is let in, and what is printed."""

from __future__ import annotations

import contextlib
import secrets
import socket
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path
from types import FrameType

from boardcluster.errors import AddressError, UsageError
from boardcluster.remote.gate import end_programs

__all__ = ["LOOPBACK", "Serving", "bind_free_port", "serve"]

LOOPBACK = "127.0.0.1"
_PORTS_TRIED = 20
_END_SECONDS = 2
_CONNECTIONS_WAITING = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Serving:
    """How the dashboard is served."""

    home: Path
    """The cluster's state folder."""
    cache: Path
    """Folder of fetched engines and data."""
    port: int
    """The first port to try."""
    address: str = LOOPBACK
    """What to listen on."""
    certificate: Path | None = None
    """Certificate of TLS; None for plain HTTP."""
    key: Path | None = None
    """Its private key; None where the certificate's file has it."""
    plain: bool = False
    """Whether plain HTTP is wanted on other addresses than the loopback."""
    control: bool = False
    """Whether the page may start and stop work."""

    @property
    def scheme(self) -> str:
        """``http`` or ``https``."""
        return "http" if self.certificate is None else "https"


def bind_free_port(address: str, port: int) -> socket.socket:
    """Return a socket on the port, or on the next that is free.

    Raises:
        AddressError: this machine has no such address, or none of 20 ports is free.
    """
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    problem = ""
    for candidate in range(port, min(port + _PORTS_TRIED, 65_536)):
        found = socket.socket(family, socket.SOCK_STREAM)
        try:
            found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            found.bind((address, candidate))
            found.listen(_CONNECTIONS_WAITING)
        except (OSError, OverflowError) as error:
            found.close()
            problem = str(getattr(error, "strerror", None) or error)
            continue
        return found
    raise AddressError(
        f"no port from {port} on can be used at {address}: {problem}",
        hint="choose another with --port, or an address of this machine with --address",
    )


def _check(serving: Serving) -> None:
    """Refuse to serve others without encryption unless that is what is wanted.

    Raises:
        UsageError: the address is none, or is not the loopback's.
    """
    try:
        is_loopback = ip_address(serving.address).is_loopback
    except ValueError as error:
        raise UsageError(
            f"{serving.address!r} is not an address", hint="give one of this machine's, in digits"
        ) from error
    if serving.key is not None and serving.certificate is None:
        raise UsageError("a key needs its certificate", hint="add --certificate FILE")
    for path in (serving.certificate, serving.key):
        if path is not None and not path.is_file():
            raise UsageError(f"there is no file {path}", hint="give the path of a PEM file")
    if not is_loopback and serving.certificate is None and not serving.plain:
        raise UsageError(
            f"{serving.address} is reachable from other machines, and nothing would be encrypted",
            hint="add --certificate FILE (and --key FILE), or --plain if everybody on this network "
            "may read along; an SSH tunnel to the loopback address needs neither",
        )


def serve(
    serving: Serving, *, say: Callable[[str], object], opened: Callable[[str], object]
) -> None:
    """Serve until Ctrl-C.

    Args:
        serving: how.
        say: told what the user needs to know, line by line.
        opened: told the address of the page, without the token, once it can be opened.

    Raises:
        UsageError: others would reach it without encryption, or the certificate cannot be used.
        AddressError: no port is free.
    """
    _check(serving)
    import uvicorn  # noqa: PLC0415  half a second with what it serves; the help needs none of it

    from boardcluster.web.app import Dashboard, build_app  # noqa: PLC0415
    from boardcluster.web.control import Control  # noqa: PLC0415
    from boardcluster.web.guard import Guard, allowed_hosts  # noqa: PLC0415
    from boardcluster.web.reports import Reports  # noqa: PLC0415
    from boardcluster.web.stored import StoredRuns  # noqa: PLC0415
    from boardcluster.web.watching import ClusterWatch  # noqa: PLC0415

    with (
        _bound(serving, say) as listening,
        contextlib.closing(Reports(serving.home)) as reports,
    ):
        port = int(listening.getsockname()[1])
        token = secrets.token_urlsafe(24) if serving.control else ""
        board = Dashboard(
            ClusterWatch(serving.home, serving.cache),
            StoredRuns(serving.home),
            reports,
            Control(serving.home, serving.cache) if serving.control else None,
        )
        names = () if serving.address == LOOPBACK else (socket.gethostname(), socket.getfqdn())
        guard = Guard(
            build_app(board),
            allowed_hosts(serving.address, port, names, scheme=serving.scheme),
            scheme=serving.scheme,
            token=token,
        )
        page = f"{serving.scheme}://{_host(serving.address)}:{port}/"
        page += f"#token={token}" if token else ""
        config = uvicorn.Config(
            guard,
            log_level="error",
            access_log=False,
            server_header=False,
            lifespan="on",
            ws="none",
            timeout_graceful_shutdown=_END_SECONDS,
            ssl_certfile=serving.certificate,
            ssl_keyfile=serving.key,
        )
        _load(serving, config.load)
        board.on_begin = lambda: _say_begun(serving, page, token, say, opened)

        class PageServer(uvicorn.Server):
            """Ends the streams of events first: each would otherwise be waited for."""

            def handle_exit(self, sig: int, frame: FrameType | None) -> None:
                board.end_soon()
                super().handle_exit(sig, frame)

        try:
            PageServer(config).run(sockets=[listening])
        finally:
            end_programs()  # of plans: Python would wait for their threads before it ends


def _host(address: str) -> str:
    """Return the host of the page's address; a wildcard is no name that the guard answers to."""
    if ip_address(address).is_unspecified:
        return socket.gethostname()
    return f"[{address}]" if ":" in address else address


def _load(serving: Serving, load: Callable[[], None]) -> None:
    """Load the server's configuration once, so that a key's passphrase is asked for once.

    Raises:
        UsageError: the certificate or its key is no PEM file, or they do not belong together.
    """
    try:
        load()
    except OSError as error:  # errors of TLS are such, too
        key = f" with the key {serving.key}" if serving.key is not None else ""
        raise UsageError(
            f"the certificate {serving.certificate} cannot be used{key}: {error.strerror or error}",
            hint="give PEM files of a certificate and of the private key that belongs to it: "
            "--certificate FILE, and --key FILE if the key is not in the same file",
        ) from error


def _say_begun(
    serving: Serving,
    page: str,
    token: str,
    say: Callable[[str], object],
    opened: Callable[[str], object],
) -> None:
    say(f"dashboard: {page}")
    if token:
        say(f"token to start and stop work: {token}")
    if ip_address(serving.address).is_unspecified:
        say("it listens on every address of this machine; others can read everything on the page")
    say("until Ctrl-C")
    # Whoever opens it starts a browser with the address as an argument, which every user can read.
    opened(page.partition("#")[0])


@contextlib.contextmanager
def _bound(serving: Serving, say: Callable[[str], object]) -> Iterator[socket.socket]:
    with bind_free_port(serving.address, serving.port) as listening:
        port = int(listening.getsockname()[1])
        if serving.port not in {0, port}:
            say(f"port {serving.port} is in use; the dashboard takes {port}")
        yield listening
