"""boardcluster: a real Hadoop + Spark cluster from boards, or from one Linux machine.

    import boardcluster as bc

    cluster = bc.open("default", tell=print)
    cluster.up()
    done = cluster.run("examples/quick.toml", resume=True)
    frame = bc.results("default").to_pandas()
    samples = bc.results("default").telemetry(done.runs[0])
    bc.report("default", out="report")
    print(bc.compare("engine:mapreduce", "engine:spark").words.headline)

What is named here is loaded when it is first used, so that the import itself takes no time.
"""

from importlib import import_module
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from boardcluster.api import Cluster, Comparison, Results, Table, compare, report, results
    from boardcluster.api import open_cluster as open  # noqa: A004
    from boardcluster.campaign.life import CampaignOutcome
    from boardcluster.errors import BoardclusterError
    from boardcluster.report import Written
    from boardcluster.services.status import Status

__all__ = [
    "BoardclusterError",
    "CampaignOutcome",
    "Cluster",
    "Comparison",
    "Results",
    "Status",
    "Table",
    "Written",
    "__version__",
    "compare",
    "open",
    "report",
    "results",
]

__version__ = version("boardcluster")

_PLACES = {
    "BoardclusterError": "errors",
    "CampaignOutcome": "campaign.life",
    "Status": "services.status",
    "Written": "report",
}
"""The module of a name; all others are of ``api``."""


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = import_module(f"{__name__}.{_PLACES.get(name, 'api')}")
    return getattr(module, "open_cluster" if name == "open" else name)


def __dir__() -> list[str]:
    return __all__
