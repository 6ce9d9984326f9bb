"""Slurm's configuration in the spec of a SlurmCluster: lines that are added to generated files, files of /etc/slurm, and scripts."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import Field

from soperator.api.base import DNS_NAME, Model, Problem, Text
from soperator.api.validation.cel import Rule

_KEY = r"^[-._a-zA-Z0-9]+$"
#: One element of a path, and a key of a ConfigMap.
_FILE_NAME = r"^[A-Za-z0-9_][-._A-Za-z0-9]*$"


class ExtraLines(Model):
    """Lines appended to the generated files. A line that sets a setting of the operator is refused."""

    slurm: Text = Field(default="", description="Extra lines of slurm.conf.")
    cgroup: Text = Field(default="", description="Extra lines of cgroup.conf.")
    gres: Text = Field(default="", description="Extra lines of gres.conf.")
    slurmdbd: Text = Field(
        default="",
        description="Extra lines of slurmdbd.conf, such as TrackWCKey=yes. A change restarts slurmdbd without a trial.",
    )
    plugstack: Text = Field(
        default="",
        description=(
            "SPANK plugins beside those of the operator, as lines of plugstack.conf: required or optional, the whole path, "
            "arguments. The file must be there in slurmd's image and in the jail, at the same path."
        ),
    )


class EntryRef(Model):
    """One entry of a ConfigMap or of a Secret in this namespace."""

    name: Annotated[str, Field(pattern=DNS_NAME, min_length=1, max_length=253)] = Field(
        description="Name of the object."
    )
    key: Annotated[str, Field(pattern=_KEY, min_length=1, max_length=253)] = Field(description="Key of the entry.")


class FileSource(Model):
    """The content of a file: exactly one of text, configMapKeyRef and secretKeyRef."""

    text: Text = Field(default="", description="The content itself.")
    config_map_key_ref: EntryRef | None = Field(
        default=None, description="An entry of a ConfigMap. A change is tested and distributed within 30 s."
    )
    secret_key_ref: EntryRef | None = Field(
        default=None,
        description="An entry of a Secret, for content that only slurmctld reads. Slurm's files are kept in ConfigMaps of this namespace.",
    )


class ConfigFile(FileSource):
    """A file of /etc/slurm."""

    name: Annotated[str, Field(pattern=_FILE_NAME, min_length=1, max_length=128)] = Field(
        description="Name of the file, for example job_submit.lua, cli_filter.lua, topology.conf, oci.conf or mpi.conf."
    )


class HookScript(FileSource):
    """A script that Slurm runs around jobs or tasks."""

    name: Annotated[str, Field(pattern=_FILE_NAME, min_length=1, max_length=63)] = Field(
        description="Name of the script, which logs show."
    )


def _scripts(description: str) -> list[HookScript]:
    made: list[HookScript] = Field(default_factory=list, max_length=16, description=description)
    return made


class Config(Model):
    """Lines appended to the generated files, and files and scripts of their own."""

    extra_lines: ExtraLines = Field(default_factory=ExtraLines, description="Lines appended to the generated files.")
    files: list[ConfigFile] = Field(
        default_factory=list,
        max_length=32,
        description=(
            "Further files of /etc/slurm. slurmctld distributes the files that Slurm knows; job_submit.lua enables its plugin. In a "
            "topology.conf name every node that a NodeSet may have: one that it leaves out takes no jobs."
        ),
    )
    prolog: list[HookScript] = _scripts(
        "Scripts that slurmd runs as root, in this order, before a job begins on a node, outside the jail. If one fails, the node is drained."
    )
    epilog: list[HookScript] = _scripts(
        "Scripts that slurmd runs as root, in this order, after a job has ended on a node."
    )
    prolog_slurmctld: list[HookScript] = _scripts(
        "Scripts that slurmctld runs as its user, in this order, when a job gets its nodes. If one fails, the job is queued again."
    )
    epilog_slurmctld: list[HookScript] = _scripts(
        "Scripts that slurmctld runs as its user, in this order, after a job has ended."
    )
    task_prolog: list[HookScript] = _scripts(
        "Scripts that run in the jail as the user, in this order, before each task. Lines `export NAME=value` of their output set its environment."
    )
    task_epilog: list[HookScript] = _scripts(
        "Scripts that run in the jail as the user, in this order, after each task."
    )

    def file(self, *names: str) -> str:
        """Return the first of these names that a file of the spec has; empty if none has."""
        return next((each.name for each in self.files if each.name in names), "")


SOURCE = (
    Rule(
        cel="[has(self.text) && self.text != '', has(self.configMapKeyRef), has(self.secretKeyRef)].filter(is, is).size() == 1",
        message="the content has one source: set exactly one of text, configMapKeyRef and secretKeyRef",
        holds=lambda source: sum(map(bool, (source.text, source.config_map_key_ref, source.secret_key_ref))) == 1,
    ),
)

Hook = Literal["prolog", "epilog", "prologSlurmctld", "epilogSlurmctld", "taskProlog", "taskEpilog"]
#: How the names of scripts begin in /etc/slurm. Scripts of tasks have no files of their own.
PREFIXES: dict[Hook, str] = {
    "prolog": "prolog-",
    "epilog": "epilog-",
    "prologSlurmctld": "slurmctld-prolog.",
    "epilogSlurmctld": "slurmctld-epilog.",
    "taskProlog": "task-prolog.",
    "taskEpilog": "task-epilog.",
}
#: Files with a topology. 25.05 and later take the second, where it is there.
TOPOLOGY_FILES = ("topology.conf", "topology.yaml")
#: What slurmctld hands out to every node, whatever the release: names in Slurm's libslurmfull of 24.11 and 26.05.
HANDED_OUT = frozenset(
    {
        *("acct_gather.conf", "cli_filter.lua", "fake_gpus.conf", "helpers.conf", "mpi.conf", "oci.conf", "scrun.lua"),
        *TOPOLOGY_FILES,
    }
)
_PLUGIN = "its plugin puts jobs into the jail and reads no such file: remove it"
_KEYS = "keys are in Secrets of the operator: remove it, and see auth"
#: Files that have another field, or that the operator owns.
OWNED_FILES: dict[str, str] = {
    **{
        f"{each}.conf": f"the operator writes this file: put your lines into config.extraLines.{each}"
        for each in ("slurm", "cgroup", "gres", "plugstack", "slurmdbd")
    },
    "job_container.conf": _PLUGIN,
    "namespace.yaml": _PLUGIN,
    **dict.fromkeys(("slurm.key", "slurm.jwks", "jwt_hs256.key", "munge.key"), _KEYS),
}
_OURS = re.compile("^(checks|prolog|epilog|slurmctld|task)-")


@dataclass(frozen=True)
class FileRef:
    """An entry of a ConfigMap or a Secret."""

    kind: Literal["ConfigMap", "Secret"]
    name: str
    key: str


@dataclass(frozen=True)
class ConfigEntry:
    """One file or script of a spec: its path there, the file of /etc/slurm that it becomes, its content, and the script's hook."""

    path: str
    file: str
    source: ConfigFile | HookScript
    hook: Hook | None = None

    @property
    def ref(self) -> FileRef | None:
        """The source of the content; None if it is in the spec."""
        said = self.source
        if said.config_map_key_ref:
            return FileRef("ConfigMap", said.config_map_key_ref.name, said.config_map_key_ref.key)
        return FileRef("Secret", said.secret_key_ref.name, said.secret_key_ref.key) if said.secret_key_ref else None

    @property
    def field(self) -> str:
        """The path of its content."""
        return f"{self.path}.{'text' if self.ref is None else self._word}"

    @property
    def _word(self) -> str:
        return "configMapKeyRef" if self.source.config_map_key_ref else "secretKeyRef"

    @property
    def is_handed_out(self) -> bool:
        """Whether every node gets the file."""
        return self.file in HANDED_OUT if self.hook is None else not self.hook.endswith("Slurmctld")


def hooks(config: Config) -> dict[Hook, list[HookScript]]:
    """Return the scripts by their hooks."""
    return {
        "prolog": config.prolog,
        "epilog": config.epilog,
        "prologSlurmctld": config.prolog_slurmctld,
        "epilogSlurmctld": config.epilog_slurmctld,
        "taskProlog": config.task_prolog,
        "taskEpilog": config.task_epilog,
    }


def entries(config: Config) -> Iterator[ConfigEntry]:
    """Yield every file and every script of a spec. The names of slurmctld's scripts sort in their order."""
    for number, file in enumerate(config.files):
        yield ConfigEntry(f"spec.config.files[{number}]", file.name, file)
    for hook, scripts in hooks(config).items():
        for number, script in enumerate(scripts):
            place = f"{number:02}-" if hook.endswith("Slurmctld") else ""
            yield ConfigEntry(f"spec.config.{hook}[{number}]", f"{PREFIXES[hook]}{place}{script.name}", script, hook)


def config_problems(config: Config, has_topology: bool) -> Iterator[Problem]:
    """Yield the problems of files and scripts that a schema cannot express.

    `has_topology` says whether the operator writes topology.conf from spec.topology.
    """
    seen: set[tuple[Hook | None, str]] = set()
    for each in entries(config):
        name = each.source.name
        if (each.hook, name) in seen:
            yield Problem(f"{each.path}.name", name, "another entry of the list has this name: choose another one")
        seen.add((each.hook, name))
        if remedy := _taken(each, has_topology):
            yield Problem(f"{each.path}.name", name, remedy)
        if each.ref and each.ref.kind == "Secret" and each.is_handed_out:
            remedy = "slurmctld sends this file to every node, where users read it: put it into text or a ConfigMap"
            yield Problem(f"{each.path}.secretKeyRef", each.ref.name, remedy)


def _taken(entry: ConfigEntry, has_topology: bool) -> str:
    """Return why a file of this name is refused; empty if it is accepted."""
    if entry.hook is not None:
        return ""
    if has_topology and entry.file in TOPOLOGY_FILES:
        return "spec.topology already defines the topology: remove the file, or set topology.type to None"
    if _OURS.match(entry.file):
        return "the operator uses this name for its own script: choose another name, or list a script under its hook, as in config.prolog"
    return OWNED_FILES.get(entry.file, "")


def content_problems(entry: ConfigEntry, text: str) -> Iterator[Problem]:
    """Yield the faults in the content of a file or script, from any source, that the kernel or Slurm could not read."""
    if "\0" in text:
        yield Problem(
            entry.field, entry.source.name, "it contains a zero byte, so it is not a text file: remove the byte"
        )
    if entry.hook is None:
        return
    first = text.split("\n", 1)[0]
    if not re.match(r"#! */\S", first):
        remedy = "begin the script with the line that names its interpreter, for example #!/bin/sh"
        is_secret = entry.ref is not None and entry.ref.kind == "Secret"
        yield Problem(f"{entry.field}, line 1", "" if is_secret else first[:80], remedy)
    elif first.endswith("\r"):
        remedy = "its first line ends with a carriage return, which the kernel reads as part of the interpreter: use Unix line ends"
        yield Problem(f"{entry.field}, line 1", first.rstrip()[:80], remedy)
