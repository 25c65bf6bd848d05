"""From a trial to its cluster variant and to what each of its jobs is to do. Pure."""

from __future__ import annotations

from dataclasses import dataclass, replace

from boardcluster.errors import UsageError
from boardcluster.factors import FACTORS
from boardcluster.records import ClusterSpec, Engine, PlannedFault, Trial
from boardcluster.services.job_sizing import JobSizing, input_maps, size_job
from boardcluster.services.profile import Profile, with_settings
from boardcluster.services.settings import (
    all_properties,
    by_file,
    merge_files,
    of_daemons,
    of_jobs,
)
from boardcluster.services.sizing import available_mib
from boardcluster.spec.variant import ClusterVariant
from boardcluster.workloads import load_workload
from boardcluster.workloads.base import (
    InputKind,
    JobSpec,
    Need,
    Workload,
    check_fault,
    check_parameters,
    check_variant,
)

__all__ = ["TrialJob", "check_spark_fits", "jobs_of", "settings_of", "variant_of"]


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialJob:
    """One job of a trial."""

    label: str
    """Its name among the trial's jobs: the workload's, numbered in a mix."""
    workload: Workload
    """The workload."""
    spec: JobSpec
    """What to do."""
    sizing: JobSizing | None = None
    """What it gets by the rule of the profile ``default``; None in other profiles."""

    @property
    def need(self) -> Need:
        """The space that it needs. HDFS keeps no more copies of a block than there are workers."""
        copies = min(self.spec.replication, self.spec.workers)
        return self.workload.need(replace(self.spec, replication=copies))


def variant_of(trial: Trial) -> ClusterVariant:
    """Return the cluster variant that a trial runs on."""
    return ClusterVariant(
        profile=trial.profile,
        workers=trial.workers,
        master=trial.master,
        settings=tuple(sorted(of_daemons(trial.settings).items())),
    )


def jobs_of(trial: Trial, spec: ClusterSpec, profile: Profile) -> tuple[TrialJob, ...]:
    """Return a trial's jobs in the order of its mix.

    Args:
        trial: the trial.
        spec: the cluster in the variant that the trial runs on.
        profile: its profile.

    Raises:
        UsageError: a parameter or setting is unknown or wrong, or a job spec makes no sense.
        CapacityError: the nodes cannot hold a job spec, or what a setting asks for.
    """
    profile = with_settings(profile, of_jobs(trial.settings), spec)
    own = _properties_of_factors(trial)
    profile = replace(
        profile,
        properties=merge_files(profile.properties, own),
        settings={**profile.settings, **all_properties(own)},
    )
    names = _names_of(trial)
    smallest = min(spec.workers, key=lambda worker: available_mib(worker)[0])
    replication = int(profile.properties["hdfs-site"].get("dfs.replication", 3))
    jobs = []
    for number, name in enumerate(names, start=1):
        workload = load_workload(name)
        _check_engine(trial, workload)
        check_spark_fits(profile, trial.engine)
        prefix = f"{name}."
        given = {
            key.removeprefix(prefix): value
            for key, value in trial.parameters.items()
            if key.startswith(prefix)
        }
        size_bytes = 0 if workload.input_kind is InputKind.NOTHING else trial.size_bytes
        sizing = size_job(
            spec,
            profile,
            trial.engine,
            size_bytes=size_bytes,
            workload=name,
            reads_input=workload.reads_input,
            at_once=min(trial.concurrency, len(names)),
        )
        hdfs = profile.properties["hdfs-site"] | (
            sizing.properties.get("hdfs-site", {}) if sizing else {}
        )
        job_spec = JobSpec(
            engine=trial.engine,
            size_bytes=size_bytes,
            replication=replication,
            checksum=trial.checksum,
            parameters=check_parameters(workload, given),
            workers=len(spec.workers),
            least_memory_bytes=min(node.memory_bytes for node in spec.nodes),
            worker_cores=min(worker.cores for worker in spec.workers),
            smallest_memory_bytes=smallest.memory_bytes,
            smallest_roles=smallest.roles,
            block_bytes=int(hdfs.get("dfs.blocksize", 128 << 20)),
            input_maps=input_maps(spec, profile, size_bytes=size_bytes)
            if workload.input_kind is InputKind.ROWS
            else 0,
            variant=trial.variant,
            fault=trial.fault,
        )
        check_variant(workload, trial.variant)
        check_fault(workload, trial.fault, spec)
        workload.check(job_spec)
        label = name if len(names) == 1 else f"{number}-{name}"
        jobs.append(TrialJob(label=label, workload=workload, spec=job_spec, sizing=sizing))
    return tuple(jobs)


def _names_of(trial: Trial) -> list[str]:
    """Return the workloads of a mix; with a fault of one, as it is written down only once."""
    names = trial.workload.split("+")
    if trial.fault is not PlannedFault.NONE and len(names) > 1:
        raise UsageError(
            f"{trial.workload}: a fault needs a run of one job",
            hint='leave the mix out, or set fault = "none"',
        )
    return names


def _check_engine(trial: Trial, workload: Workload) -> None:
    if trial.engine not in workload.engines:
        raise UsageError(
            f"{workload.name} does not run on {trial.engine}",
            hint=f"its engines: {', '.join(workload.engines)}",
        )
    if not trial.engine.on_yarn and trial.concurrency > 1:
        raise UsageError(
            f"{trial.workload}: jobs of {trial.engine.own_name} share memory and ports, so they "
            "cannot run at once",
            hint="set concurrency = 1, or leave the mix out",
        )


def check_spark_fits(profile: Profile, engine: Engine) -> None:
    """Refuse Spark on nodes that hold no executor.

    Raises:
        UsageError: with the arithmetic.
    """
    if engine is Engine.SPARK and profile.spark_refusal:
        raise UsageError(
            f"Spark does not fit on these nodes: {profile.spark_refusal}",
            hint="use MapReduce, or give the nodes more memory",
        )


def settings_of(trial: Trial) -> dict[str, dict[str, str]]:
    """Return the properties, per configuration file, that a trial sets for its jobs."""
    return merge_files(by_file(of_jobs(trial.settings)), _properties_of_factors(trial))


def _properties_of_factors(trial: Trial) -> dict[str, dict[str, str]]:
    """Return the properties, per configuration file, that the levels of a trial's factors are."""
    return merge_files(*(factor.properties(factor.level(trial)) for factor in FACTORS))
