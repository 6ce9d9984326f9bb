"""A site's own files of /etc/slurm and its scripts, and the lines of slurm.conf that use them.

slurmctld distributes the files that it knows, and scripts of Prolog and Epilog without a path; scripts of tasks only in later releases. So
one script with all scripts of a kind is also listed as a Prolog, where it does nothing, and as a TaskProlog by its path on the node.

Slurm runs several PrologSlurmctld at once, and each must be executable, but files of a ConfigMap are not: so a program of the image runs
them in their order (images/slurm/scripts). Sources: src/common/fetch_config.c, and prolog_epilog.html.
"""

import hashlib
import shlex
from collections.abc import Iterator, Sequence

from soperator.api.base import Problem
from soperator.api.fields.config import ConfigEntry, Hook, entries
from soperator.render.parts.model import Cluster
from soperator.slurm import conf
from soperator.slurm.settings.lint import lint_entry

#: In slurmctld's image.
RUNNER = "/usr/lib/soperator/scripts"
#: Where slurmd has the configuration that slurmctld gave it: SlurmdSpoolDir, read-only in the jail.
_CACHE = "/var/spool/slurmd/conf-cache"
_TASKS: dict[Hook, tuple[str, str, str]] = {
    "taskProlog": ("task-prolog", "prolog_task", "Prolog"),
    "taskEpilog": ("task-epilog", "epilog_task", "Epilog"),
}


def text_of(cluster: Cluster, entry: ConfigEntry) -> str | None:
    """Return the content of a file or script, with a line end; None if the content of its reference is not known."""
    text = cluster.contents.get(entry.ref) if entry.ref else entry.source.text
    return None if text is None else f"{text.rstrip()}\n"


def missing(cluster: Cluster) -> list[ConfigEntry]:
    """Return the entries whose content is not known."""
    return [each for each in entries(cluster.spec.config) if text_of(cluster, each) is None]


def problems(cluster: Cluster) -> list[Problem]:
    """Return the faults of contents that were read from ConfigMaps and Secrets; faults in the spec's own contents are problems of the spec."""
    referred = [each for each in entries(cluster.spec.config) if each.ref in cluster.contents]
    return [each for entry in referred for each in lint_entry(entry, text_of(cluster, entry) or "")]


def texts(cluster: Cluster) -> dict[str, str]:
    """Return the files by their names in /etc/slurm. A file whose content is not known has a text that reports it, and is never written."""
    found = {
        each.file: text_of(cluster, each) or f"# {each.ref} is not known\n"
        for each in entries(cluster.spec.config)
        if each.hook not in _TASKS
    }
    for hook, (file, context, _) in _TASKS.items():
        if scripts := _scripts_of(cluster, hook):
            found[file] = _one_after_another(cluster, scripts, context)
    return found


def settings(cluster: Cluster) -> list[conf.Line]:
    """Return the lines of slurm.conf, which follow the operator's own, because Slurm runs those first."""
    lines = [conf.line(JobSubmitPlugins="lua")] if cluster.spec.config.file("job_submit.lua") else []
    lines += [conf.line(Prolog=each.file) for each in _scripts_of(cluster, "prolog")]
    lines += [conf.line(Epilog=each.file) for each in _scripts_of(cluster, "epilog")]
    lines += [conf.line(PrologSlurmctld=RUNNER)] if _scripts_of(cluster, "prologSlurmctld") else []
    lines += [conf.line(EpilogSlurmctld=RUNNER)] if _scripts_of(cluster, "epilogSlurmctld") else []
    for hook, (file, _, carrier) in _TASKS.items():
        if _scripts_of(cluster, hook):
            lines += [conf.line(**{carrier: file}), conf.line(**{f"Task{carrier}": f"{_CACHE}/{file}"})]
    return lines


def _scripts_of(cluster: Cluster, hook: Hook) -> list[ConfigEntry]:
    return [each for each in entries(cluster.spec.config) if each.hook == hook]


def _one_after_another(cluster: Cluster, scripts: Sequence[ConfigEntry], context: str) -> str:
    """Return a script that runs others in their order, each by its own interpreter, until one fails."""
    begin = f'#!/bin/sh\n# Slurm hands this out as another kind of script too, which it is not.\n[ "$SLURM_SCRIPT_CONTEXT" = {context} ] || exit 0\n'
    return begin + "".join(line for each in scripts for line in _run(cluster, each))


def _run(cluster: Cluster, script: ConfigEntry) -> Iterator[str]:
    text = text_of(cluster, script) or f"#!/bin/sh\n# {script.ref} is not known\n"
    end = f"end-{hashlib.sha256(text.encode()).hexdigest()[:16]}"
    yield f"# {script.source.name}\n{_interpreter(text)} /dev/fd/9 9<<'{end}' || exit\n{text}{end}\n"


def _interpreter(text: str) -> str:
    """Return the command of a script's first line as the kernel reads it: a program, and all the rest as one argument."""
    program, _, argument = text.split("\n", 1)[0].removeprefix("#!").strip().partition(" ")
    return " ".join(shlex.quote(each) for each in (program, argument.strip()) if each)
