"""The image's program that slurmctld runs as PrologSlurmctld and EpilogSlurmctld: a site's scripts in their order."""

import subprocess
from pathlib import Path

import pytest

PROGRAM = Path(__file__).parents[3] / "images/slurm/scripts"


def run(folder: Path, context: str, **scripts: str) -> tuple[int, str]:
    """What the program ends with, and prints, where these scripts are; files of a ConfigMap are not executable."""
    for name, text in scripts.items():
        (folder / name.replace("__", "-").replace("_", ".", 1)).write_text(text)
    env = {"PATH": "/usr/bin:/bin", "SLURM_SCRIPT_CONTEXT": context, "SOPERATOR_SCRIPTS": str(folder)}
    done = subprocess.run([PROGRAM], capture_output=True, text=True, env=env, check=False, timeout=20)
    return done.returncode, done.stdout + done.stderr


@pytest.mark.parametrize("kind", ["prolog", "epilog"])
def test_scripts_run_in_the_order_of_their_names(tmp_path: Path, kind: str) -> None:
    """Each by the interpreter of its first line; those of the other kind do not run."""
    own = {
        f"slurmctld__{kind}_00__b": "#!/bin/sh\necho one",
        f"slurmctld__{kind}_01__a": '#! /usr/bin/env perl\nprint "two\\n"',
        "slurmctld__other_00__c": "#!/bin/sh\necho never",
    }
    assert run(tmp_path, f"{kind}_slurmctld", **own) == (0, "one\ntwo\n")
    assert run(tmp_path, "prolog_slurmd") == (0, "")


def test_one_that_fails_is_the_last(tmp_path: Path) -> None:
    """slurmctld gets its exit code; what follows the interpreter is one argument."""
    own = {
        "slurmctld__prolog_00__a": "#!/bin/sh -e\nfalse\necho never",
        "slurmctld__prolog_01__b": "#!/bin/sh\necho never",
    }
    assert run(tmp_path, "prolog_slurmctld", **own) == (1, "")


def test_without_scripts_nothing_happens(tmp_path: Path) -> None:
    """An EpilogSlurmctld of a spec that has only a prolog is not named, and one that is named ends well."""
    assert run(tmp_path, "epilog_slurmctld") == (0, "")
