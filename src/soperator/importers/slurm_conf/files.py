"""The files of Slurm's configuration folder, and the lines of slurm.conf with those of included files.

The texts come from the caller, which reads paths until `wanted_paths` names no further one. Source: slurm.conf(5), Include; parse_config.c of 24.11.
"""

import itertools
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import PurePosixPath

from soperator.importers.parts.free_settings import shown
from soperator.importers.parts.report import UnreadableInputError
from soperator.slurm.conf import LogicalLine, logical_lines

#: Files beside slurm.conf that an import reads without being asked.
COMPANIONS = (
    *("gres.conf", "cgroup.conf", "topology.conf", "topology.yaml", "slurmdbd.conf", "plugstack.conf"),
    *("job_submit.lua", "cli_filter.lua", "mpi.conf", "oci.conf", "acct_gather.conf", "helpers.conf", "scrun.lua"),
    *("job_container.conf", "namespace.yaml"),
)
#: Settings of slurm.conf that name scripts, with the lists of spec.config that hold them.
SCRIPTS: Mapping[str, str] = {
    "prolog": "prolog",
    "epilog": "epilog",
    "prologslurmctld": "prologSlurmctld",
    "epilogslurmctld": "epilogSlurmctld",
    "taskprolog": "taskProlog",
    "taskepilog": "taskEpilog",
}


#: The most includes, each counted as often as it is read, and the most below each other.
MOST_INCLUDES, DEEPEST_INCLUDE = 1000, 32


@dataclass(frozen=True)
class SlurmFiles:
    """The texts of files by their paths, and the path of slurm.conf."""

    main: str
    texts: Mapping[str, str]

    @property
    def folder(self) -> str:
        """The folder of slurm.conf, to which other names are relative."""
        return str(PurePosixPath(self.main).parent)

    def place(self, path: str) -> str:
        """Return the name of a file for the report: relative to the folder where it is inside it."""
        return path.removeprefix(f"{self.folder}/")

    def companion(self, name: str) -> str:
        """Return the path of a given file with this name; empty if there is none."""
        return next((path for path in self.texts if PurePosixPath(path).name == name and path != self.main), "")

    def matching(self, said: str, cluster: str) -> list[str]:
        """Return the paths of the given files that a setting names, which may be a pattern of names in a folder."""
        for pattern in candidates(said, self.folder, cluster):
            folder, name = PurePosixPath(pattern).parent, PurePosixPath(pattern).name
            beside = (path for path in self.texts if PurePosixPath(path).parent == folder)
            if found := sorted(
                path for path in beside if path == pattern or fnmatchcase(PurePosixPath(path).name, name)
            ):
                return found
        return []


@dataclass(frozen=True)
class SourceLine:
    """A line of a file, and the file's name for the report."""

    file: str
    line: LogicalLine

    @property
    def place(self) -> str:
        """The place for the report."""
        return f"{self.file}, line {self.line.number}"

    @property
    def name(self) -> str:
        """The value of the first pair, which is the name of an object."""
        return self.line.pairs[0][1]

    def settings(self) -> Iterator[tuple[str, str, str]]:
        """Yield key, value and the text for the report of each pair."""
        yield from ((key, value, shown(key, value)) for key, value in self.line.pairs)

    def texts(self) -> Iterator[str]:
        """Yield what the line contains, for the report: each pair, an include, and what Slurm cannot read."""
        yield from (text for _, _, text in self.settings())
        yield from ([f"Include {self.line.include}"[:120]] if self.line.include else [])
        yield from ([self.line.rest[:120]] if self.line.rest else [])


def candidates(said: str, folder: str, cluster: str) -> Sequence[str]:
    """Return the paths at which a file named in slurm.conf may be: its own, and for an absolute one those in a copy of its folder.

    A copy may begin at any folder of the path. The last name alone is no pattern, which would match all files beside slurm.conf.
    """
    name = said.replace("%c", cluster)
    if not name.startswith("/"):
        return (f"{folder}/{name}",)
    parts = PurePosixPath(name).parts[1:]
    tails = ["/".join(parts[start:]) for start in range(len(parts))]
    return (name, *(f"{folder}/{tail}" for tail in tails if "/" in tail or not is_pattern(tail)))


def is_pattern(name: str) -> bool:
    """Return whether a name stands for several files, as in glob(7)."""
    return re.search(r"[*?\[]", name) is not None


def wanted_paths(files: SlurmFiles) -> set[str]:
    """Return the paths and patterns that the given files name: included files and scripts."""
    cluster, found = cluster_name(files), {f"{files.folder}/{name}" for name in COMPANIONS}
    for path, text in files.texts.items():
        if path != files.main and PurePosixPath(path).name in COMPANIONS:
            continue
        for line in logical_lines(text):
            names = [line.include] if line.include else []
            names += [value for key, value in line.pairs if key.lower() in SCRIPTS and not line.is_object]
            found.update(path for name in names if name for path in candidates(name, files.folder, cluster))
    return found


def cluster_name(files: SlurmFiles) -> str:
    """Return ClusterName of the files that are given, without following includes; empty if none has one."""
    pairs = (pair for text in files.texts.values() for line in logical_lines(text) for pair in line.pairs)
    return next((value for key, value in pairs if key.lower() == "clustername"), "")


def lines_with_includes(files: SlurmFiles) -> list[SourceLine]:
    """Return the lines of slurm.conf, each Include replaced by the lines of its file.

    Raises UnreadableInputError for a missing file, a circle, and includes that are too many or too deep for a person to have written.
    """
    return list(_lines_of(files, files.main, cluster_name(files), (), itertools.count(1)))


def _lines_of(
    files: SlurmFiles, path: str, cluster: str, above: tuple[str, ...], count: Iterator[int]
) -> Iterator[SourceLine]:
    for line in logical_lines(files.texts[path]):
        each = SourceLine(files.place(path), line)
        if not line.include:
            yield each
            continue
        what = f"{each.place}: Include {line.include}"
        found = files.matching(line.include, cluster)
        if not found:
            paths = " and ".join(candidates(line.include, files.folder, cluster))
            raise UnreadableInputError(
                f"{what}: the file does not exist: looked for {paths}; copy it there, or remove the line"
            )
        if found[0] == path or found[0] in above:
            chain = " includes ".join(map(files.place, (*above, path, found[0])))
            raise UnreadableInputError(f"{what}: the files include each other ({chain}): remove one of the lines")
        if next(count) > MOST_INCLUDES:
            raise UnreadableInputError(f"{what}: it is include number {MOST_INCLUDES + 1}: remove some of them")
        yield from _lines_of(files, found[0], cluster, (*above, path), count)


def lines_of_companion(files: SlurmFiles, name: str) -> list[SourceLine]:
    """Return the lines of a file beside slurm.conf; none if it is not given."""
    path = files.companion(name)
    return [SourceLine(files.place(path), line) for line in logical_lines(files.texts[path])] if path else []
