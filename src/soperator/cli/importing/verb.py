"""`soperator import`: writes our objects from the configuration of another system, and a report of what was not carried over."""

from collections.abc import Iterator, Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from soperator.cli.support.say import line, say

if TYPE_CHECKING:
    from soperator.importers.parts.report import Imported, ReportEntry

#: The exit code for an import that left something out.
INCOMPLETE = 3


class ForeignSystem(StrEnum):
    """The systems whose configuration can be imported."""

    SLURM = "slurm"
    NEBIUS = "nebius"
    SLINKY = "slinky"


def import_(
    system: Annotated[
        ForeignSystem,
        typer.Option(
            "--from",
            help="slurm: slurm.conf and its companions, of a Slurm on machines. nebius: objects of slurm.nebius.ai. slinky: of slinky.slurm.net.",
        ),
    ],
    files: Annotated[
        list[Path],
        typer.Option(
            "--file",
            "-f",
            metavar="FILE",
            help="A file; once for each. slurm: slurm.conf or its folder. Others: YAML, - for standard input.",
        ),
    ],
    report: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Write the whole report to a file; by default standard error gets it without `carried`.",
        ),
    ] = None,
) -> None:
    """Print the objects for a cluster that another system runs, and report every setting: carried, ours, check or left.

    carried: it is in the objects. ours: the operator determines it. check: it is in the objects, and a person must look at it. left: it is not
    carried over. Exit code 0: nothing was left out. 3: the objects are printed, and something was left out. 1: the input cannot be read, and
    nothing is printed.

    For example: soperator import --from slurm -f /etc/slurm/slurm.conf --report report.txt > cluster.yaml
    """
    from soperator.importers.parts.report import Outcome, UnreadableInputError

    try:
        found = _imported(system, files)
    except UnreadableInputError as error:
        say(line(str(error)), err=True)
        raise typer.Exit(1) from None
    entries = [*found.entries, *_faults(found)]
    _write_report(report, entries)
    typer.echo(_yaml(found.objects), nl=False)
    raise typer.Exit(INCOMPLETE if any(each.outcome is Outcome.LEFT for each in entries) else 0)


def _imported(system: ForeignSystem, files: Sequence[Path]) -> "Imported":
    from soperator.cli.importing.read_objects import read_objects
    from soperator.cli.importing.read_slurm import read_slurm_files
    from soperator.importers.nebius.whole import import_nebius
    from soperator.importers.slinky.whole import import_slinky
    from soperator.importers.slurm_conf.cluster import import_slurm

    match system:
        case ForeignSystem.SLURM:
            return import_slurm(read_slurm_files(files))
        case ForeignSystem.NEBIUS:
            return import_nebius(read_objects(files))
        case ForeignSystem.SLINKY:
            return import_slinky(read_objects(files))


def _faults(found: "Imported") -> "Iterator[ReportEntry]":
    """Yield what `soperator lint` says about the objects, which a person must correct."""
    from soperator.cli.lint import problems_of
    from soperator.cli.support.manifests import manifests_of, worlds
    from soperator.importers.parts.report import Outcome, ReportEntry

    objects = manifests_of("the objects", found.objects)
    spaces = worlds(objects)
    for each in objects:
        for problem in problems_of(each, spaces):
            place = f"{each.kind} {each.name}"
            yield ReportEntry(
                Outcome.LEFT, place, ": ".join(filter(None, (problem.field, problem.value))), problem.remedy
            )


def _write_report(file: Path | None, entries: "Sequence[ReportEntry]") -> None:
    from soperator.importers.parts.report import Outcome

    if file is None:
        for each in entries:
            if each.outcome is not Outcome.CARRIED:
                say(line(str(each)), err=True)
    else:
        try:
            file.write_text("".join(f"{line(str(each))}\n" for each in entries), encoding="utf-8")
        except OSError as error:
            say(f"--report: {file}: it cannot be written: {error.strerror}", err=True)
            raise typer.Exit(1) from None
    counts = ((outcome, sum(each.outcome is outcome for each in entries)) for outcome in Outcome)
    say(", ".join(f"{count} {outcome}" for outcome, count in counts), err=True)


def _yaml(objects: Sequence[Any]) -> str:
    """Return the objects as YAML in ASCII; a text of several lines reads like a file."""
    import yaml

    class Dumper(yaml.SafeDumper):
        """Writes a text of several lines as a block."""

        def ignore_aliases(self, _data: Any) -> bool:
            """Return that no value is written by reference."""
            return True

    def represented(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
        style = "|" if "\n" in text else None
        return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)

    Dumper.add_representer(str, represented)
    return str(yaml.dump_all(objects, Dumper=Dumper, sort_keys=False, allow_unicode=False, width=120))
