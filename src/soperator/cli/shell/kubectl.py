"""The plugin `kubectl slurm`: the same program under another name, and the completions for kubectl.

kubectl runs `kubectl-slurm` for `kubectl slurm …`. For a completion it runs `kubectl_complete-slurm` with the words, of which the last is
incomplete, and reads names until a line with a colon and a number (cobra's ShellCompDirective; 4: no names of files).
"""

import shlex
from collections.abc import Sequence
from pathlib import Path

from soperator.cli.shell.completion import VARIABLE

_PLUGIN, _COMPLETER = "kubectl-slurm", "kubectl_complete-slurm"
#: The line behind the names.
NO_FILES = ":4"


def name_of_program(path: str) -> str:
    """Return the name that people type, from the name of the executable."""
    return "kubectl slurm" if Path(path).name.startswith(_PLUGIN) else "soperator"


def is_completer(path: str) -> bool:
    """Return whether kubectl runs this program for a completion."""
    return Path(path).name.startswith(_COMPLETER)


def as_bash_asks(words: Sequence[str]) -> dict[str, str]:
    """Return the environment with which bash requests a completion of these words; typer answers with one name a line."""
    line = shlex.join(["soperator", *words])
    return {VARIABLE: "complete_bash", "COMP_WORDS": line, "COMP_CWORD": str(max(1, len(words)))}
