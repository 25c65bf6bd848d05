"""``boardcluster metrics``: monitor the cluster with Prometheus."""

from __future__ import annotations

from typing import Annotated

import typer

from boardcluster.cli.console import Reporter, say
from boardcluster.cli.options import CacheOption, ChosenCluster, cache_folder
from boardcluster.services import operation
from boardcluster.telemetry.collector import node_targets
from boardcluster.telemetry.metrics import ADDRESS, Exporter, Server

__all__ = ["EPILOG", "command"]

_SECONDS = (1.0, 10.0)
_SETTLE_SECONDS = 5.0


EPILOG = "Example: boardcluster metrics --port 9400"


def command(
    at: ChosenCluster,
    cache: CacheOption = None,
    port: Annotated[
        int, typer.Option(min=1, max=65_535, help="Port of 127.0.0.1 to listen on.")
    ] = 9400,
    interval: Annotated[
        float,
        typer.Option(min=_SECONDS[0], max=_SECONDS[1], help="Seconds between samples."),
    ] = 5.0,
) -> None:
    """Serve live metrics of every node to Prometheus until Ctrl-C. Starts no job.

    It runs one more agent on each node, which uses 0.3 % of a core of a PC.
    """
    folder = at.folder()
    server = Server(port)
    reporter = Reporter()
    try:
        live = operation.attach(
            folder, cache=cache_folder(cache), progress=reporter.progress, any_variant=True
        )
        exporter = Exporter(node_targets(live, folder), port=server.port, interval_seconds=interval)
    except BaseException:
        server.server_close()
        raise
    try:
        exporter.start()
        exporter.settle(longest_seconds=_SETTLE_SECONDS)
        for name, error in exporter.errors().items():
            reporter.line(f"{name}: {error}")
        say(f"http://{ADDRESS}:{server.port}/metrics, until Ctrl-C")
        server.serve(exporter)
    finally:
        server.server_close()
        exporter.close()
