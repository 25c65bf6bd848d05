"""boardcluster: a real Hadoop + Spark cluster from boards, or from one Linux machine.

    import boardcluster as bc

    cluster = bc.open("default", tell=print)
    cluster.up()
    done = cluster.run("examples/quick.toml", resume=True)
    frame = bc.results("default").to_pandas()
    samples = bc.results("default").telemetry(done.runs[0])
    bc.report("default", out="report")
    print(bc.predict("terasort", engine="spark", size="4GB", workers=8).seconds)
    print(bc.compare("engine:mapreduce", "engine:spark").words.headline)

What is named here is loaded when it is first used, so that the import itself takes no time.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from boardcluster.api import (
        BoardclusterError,
        CampaignOutcome,
        Cluster,
        Comparison,
        ImportedBundle,
        PurchasePlan,
        RecomputedReport,
        Results,
        RuntimePrediction,
        Status,
        Table,
        TuneOutcome,
        Written,
        WrittenBundle,
        compare,
        export_bundle,
        import_bundle,
        plan,
        predict,
        recompute,
        report,
        results,
    )
    from boardcluster.api import open_cluster as open  # noqa: A004

__all__ = [
    "BoardclusterError",
    "CampaignOutcome",
    "Cluster",
    "Comparison",
    "ImportedBundle",
    "PurchasePlan",
    "RecomputedReport",
    "Results",
    "RuntimePrediction",
    "Status",
    "Table",
    "TuneOutcome",
    "Written",
    "WrittenBundle",
    "__version__",
    "compare",
    "export_bundle",
    "import_bundle",
    "open",
    "plan",
    "predict",
    "recompute",
    "report",
    "results",
]

if TYPE_CHECKING:
    __version__: str
else:  # so that a name that does not exist is an error to type checkers, too

    def __getattr__(name: str) -> Any:
        if name == "__version__":
            return import_module("importlib.metadata").version("boardcluster")
        if name not in __all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return getattr(
            import_module("boardcluster.api"), "open_cluster" if name == "open" else name
        )


def __dir__() -> list[str]:
    return __all__
