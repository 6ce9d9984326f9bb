"""The output of the GPU scripts: one JSON line with readings, or a sentence and exit code 2, which means that there is no reading.

They run in the jail with its own python3 of version 3.8 or newer, and use only its standard library, so they share no code with Soperator.
"""

import json
import os
import pathlib
import sys


def broken(sentence):
    """End with exit code 2: there is no reading, so the node neither passes nor fails."""
    print(f"deep: {pathlib.Path(sys.argv[0]).stem}: {sentence}", file=sys.stderr)
    sys.exit(2)


def given(otherwise):
    """Return the key=value arguments of the command line over the defaults; numbers are converted."""
    found = dict(otherwise)
    for word in sys.argv[1:]:
        key, is_one, value = word.partition("=")
        if not is_one or key not in otherwise:
            broken(f"{word} is an unknown argument: use one of {', '.join(otherwise)}")
        try:
            found[key] = type(otherwise[key])(value)
        except ValueError:
            broken(f"{word} is not a number")
    return found


def place():
    """Return the number of this task, the number of tasks, and the Slurm node."""
    node = os.environ.get("SLURMD_NODENAME") or os.uname().nodename
    return int(os.environ.get("SLURM_PROCID", "0")), int(os.environ.get("SLURM_NTASKS", "1")), node


def say(readings):
    """Print the line."""
    print(json.dumps({"soperator": 1, "readings": readings}), flush=True)
