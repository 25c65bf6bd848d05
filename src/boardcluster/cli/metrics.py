"""``boardcluster metrics``: watch the cluster with Prometheus."""

from __future__ import annotations

from typing import Annotated

import typer

from boardcluster.cli.console import Reporter, say
from boardcluster.cli.options import (
    CacheOption,
    ClusterOption,
    HomeOption,
    cache_folder,
    home_folder,
)
from boardcluster.services import operation
from boardcluster.telemetry.collector import node_targets
from boardcluster.telemetry.metrics import ADDRESS, Exporter, Server

__all__ = ["register"]

_SECONDS = (1.0, 10.0)
_SETTLE_SECONDS = 5.0


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(name="metrics", epilog="Example: boardcluster metrics --port 9400")(_metrics)


def _metrics(
    home: HomeOption = None,
    cluster: ClusterOption = "default",
    cache: CacheOption = None,
    port: Annotated[
        int, typer.Option(min=1, max=65_535, help="Port of 127.0.0.1 to answer at.")
    ] = 9400,
    interval: Annotated[
        float,
        typer.Option(min=_SECONDS[0], max=_SECONDS[1], help="Seconds from sample to sample."),
    ] = 5.0,
) -> None:
    """Serve what every node does now, for Prometheus, until Ctrl-C. Starts no job.

    An agent runs on each node meanwhile, beside that of a run, and takes 0.3 % of a PC's core.
    """
    folder = home_folder(home, cluster)
    server = Server(port)
    reporter = Reporter()
    try:
        live = operation.attach(
            folder, cache=cache_folder(cache), progress=reporter.progress, any_form=True
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
