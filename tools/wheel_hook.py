"""Puts the jar of the Spark jobs into the wheel; hatchling calls it, see pyproject.toml.

An editable install runs from the clone, which has the jar in jvm/target, built before or after.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

JAR = "jvm/target/boardcluster-jobs.jar"
PLACE = "boardcluster/workloads/jars/boardcluster-jobs.jar"
"""Where boardcluster.services.jobs looks for it in an installed package."""


class WheelHook(BuildHookInterface):  # type: ignore[misc]  # hatchling is skipped by mypy
    """Adds the jar, and refuses to build a wheel without it."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Add the jar.

        Args:
            version: ``standard``, or ``editable``.
            build_data: what the builder reads.

        Raises:
            FileNotFoundError: the jar was not built.
        """
        if version == "editable":
            return
        jar = Path(self.root) / JAR
        if not jar.is_file():
            raise FileNotFoundError(
                f"{JAR} was not built, and without it the wheel has no Spark jobs; run `make jar`"
            )
        build_data["force_include"][str(jar)] = PLACE
