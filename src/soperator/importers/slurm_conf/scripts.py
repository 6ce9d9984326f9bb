"""Scripts around jobs, and other files of the configuration folder, which become `spec.config`."""

import re
from collections.abc import Sequence
from pathlib import PurePosixPath
from typing import Any

from soperator.api.fields.config import HANDED_OUT, OWNED_FILES
from soperator.importers.parts.report import ImportReport
from soperator.importers.slurm_conf.files import SCRIPTS, SlurmFiles, is_pattern

_LONGEST, _MOST = 65536, 16
_PLACES = {
    "taskProlog": "it runs in the jail: the programs and paths that it uses must be there",
    "taskEpilog": "it runs in the jail: the programs and paths that it uses must be there",
    "prolog": "it runs in slurmd's container, outside the jail: the programs and paths that it uses must be there",
    "epilog": "it runs in slurmd's container, outside the jail: the programs and paths that it uses must be there",
    "prologSlurmctld": "it runs in slurmctld's container: the programs and paths that it uses must be there",
    "epilogSlurmctld": "it runs in slurmctld's container: the programs and paths that it uses must be there",
}


def add_scripts(
    hooks: dict[str, list[dict[str, str]]],
    setting: tuple[str, str, str, str],
    paths: Sequence[str],
    files: SlurmFiles,
    report: ImportReport,
) -> None:
    """Add the scripts of one setting (place, key, value, text) to their list; of a pattern Slurm runs the last name first."""
    place, key, value, text = setting
    hook = SCRIPTS[key.lower()]
    scripts = hooks.setdefault(hook, [])
    if not paths:
        report.left(place, text, f"the file is not among the given ones: add the script to spec.config.{hook}")
    for path in reversed(paths) if is_pattern(value) else paths:
        name = re.sub(r"[^-._A-Za-z0-9]", "-", PurePosixPath(path).name).lstrip("-.")[:63] or hook
        if fault := _fault(files.texts[path], len(scripts)):
            report.left(place, f"{text} ({files.place(path)})", fault)
        elif any(each["name"] == name for each in scripts):
            report.left(place, f"{text} ({files.place(path)})", f"spec.config.{hook} has a script of this name already")
        else:
            scripts.append({"name": name, "text": files.texts[path]})
            report.check(place, f"{text} ({files.place(path)})", f"now spec.config.{hook}: {_PLACES[hook]}")


def _fault(text: str, count: int) -> str:
    first = text.split("\n", 1)[0]
    if count >= _MOST:
        return f"a list has at most {_MOST} scripts: join some of them"
    if "\0" in text or not re.match(r"#! */\S", first) or first.endswith("\r"):
        return "it does not begin with the line of an interpreter, such as #!/bin/sh: put the program into the image, and call it from a script"
    return (
        "it is longer than 64 KiB: put it into a ConfigMap, and name that by configMapKeyRef"
        if len(text) > _LONGEST
        else ""
    )


def site_files(files: SlurmFiles, lua: Sequence[str], report: ImportReport) -> list[dict[str, Any]]:
    """Return spec.config.files: files of the folder that Slurm distributes, and the scripts of Lua in `lua`."""
    found = []
    for path, text in files.texts.items():
        name = PurePosixPath(path).name
        if name in OWNED_FILES and name not in (
            "slurm.conf",
            "cgroup.conf",
            "gres.conf",
            "plugstack.conf",
            "slurmdbd.conf",
        ):
            report.left(files.place(path), "the file", OWNED_FILES[name])
        elif not _is_ours(name, lua):
            continue
        elif "\0" in text or len(text) > _LONGEST:
            report.left(
                files.place(path),
                "the file",
                "it is longer than 64 KiB, or no text: put it into a ConfigMap, and name that in spec.config.files",
            )
        else:
            found.append({"name": name, "text": text})
            report.carried(files.place(path), "the file", "an entry of spec.config.files")
    return found


def _is_ours(name: str, lua: Sequence[str]) -> bool:
    if name.startswith("topology."):
        return False
    return name in lua or (name in HANDED_OUT and name != "cli_filter.lua")
