"""ActiveChecks of the original, which become HealthChecks where they run a script as a job of Slurm."""

from collections.abc import Mapping
from typing import Any

from soperator.api.validation.schedule import schedule_fault
from soperator.importers.nebius import reasons
from soperator.importers.parts.fields import ForeignFields, steps_of, text_of_path

_SCRIPT = (
    "the script runs as root on each node: exit code 1 with the cause in the last line of its output is a failure, any other code but 0 "
    "says nothing, and lines of #SBATCH have no effect"
)


def health_check(fields: ForeignFields, cluster: str, texts: Mapping[str, Mapping[str, str]]) -> dict[str, Any] | None:
    """Return the spec of a HealthCheck, and report every field; None if the check runs no script in Slurm. `texts`: ConfigMaps by name."""
    script = _script(fields, texts)
    if not script:
        reason = (
            "it runs no script of the objects as a job of Slurm: write a HealthCheck, or a custom check of spec.health"
        )
        fields.left("", reason)
        fields.rest(reasons.METADATA)
        return None
    schedule = fields.peek("schedule", str) or ""
    if schedule and schedule_fault(schedule):
        fields.left("schedule", "it is no schedule of five fields: set when.schedule")
        schedule = ""
    fields.carried("schedule", str, "spec.when.schedule")
    fields.ours("slurmClusterRefName", "it is spec.clusterRef")
    limit = fields.carried("activeDeadlineSeconds", int, "spec.timeLimit, in whole minutes")
    spec = {
        "clusterRef": {"name": cluster},
        "script": script,
        "when": {
            "schedule": schedule,
            "afterCreation": fields.carried("runAfterCreation", bool, "spec.when.afterCreation"),
        },
        "timeLimit": f"{max(1, -(-limit // 60))}m" if limit else "",
        "suspend": fields.carried("suspend", bool, "spec.suspend"),
        "maxParallel": _most(fields),
        "onFailure": "Drain" if _drains(fields) else "Report",
    }
    fields.rest(reasons.CHECK)
    return spec


def _script(fields: ForeignFields, texts: Mapping[str, Mapping[str, str]]) -> str:
    job = "slurmJobSpec"
    if text := fields.peek(f"{job}.sbatchScript", str):
        if text.startswith("#!/"):
            fields.check(f"{job}.sbatchScript", str, f"now spec.script: {_SCRIPT}")
            return text
        return ""
    name = fields.peek(f"{job}.sbatchScriptRefName", str) or ""
    text = texts.get(name, {}).get("sbatch.sh", "")
    if text.startswith("#!/"):
        fields.check(f"{job}.sbatchScriptRefName", str, f"now spec.script: {_SCRIPT}")
        return text
    return ""


def _most(fields: ForeignFields) -> str:
    most = fields.peek("slurmJobSpec.maxNumberOfJobs", int)
    if most:
        fields.carried("slurmJobSpec.maxNumberOfJobs", int, "spec.maxParallel")
    else:
        fields.ours("slurmJobSpec.maxNumberOfJobs", "0 is no limit there: here spec.maxParallel is 10% of the nodes")
    return str(most) if most else ""


def _drains(fields: ForeignFields) -> bool:
    """Return whether a failed check drains its node: by a flag of older releases, or by a map of newer ones."""
    for path in ("reactions.drainSlurmNode", "reactions.DrainSlurmNode"):
        if fields.carried(path, bool, "spec.onFailure"):
            return True
    path = "failureReactions.drainSlurmNode"
    if fields.peek(path, dict) is None:
        return False
    fields.taken.add(steps_of(path))
    fields.report.carried(fields.place, text_of_path(steps_of(path)), "spec.onFailure")
    return True
