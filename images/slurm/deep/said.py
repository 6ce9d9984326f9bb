"""How the scripts for GPUs answer: one JSON line with readings, or a sentence and exit code 2, which says that nothing is known.

They run in the jail by its own python3, whatever its version from 3.8 on, and with nothing but its library, so they share no code with Soperator.
"""

import json
import os
import pathlib
import sys


def broken(sentence):
    """End without a reading: neither a pass nor a failure of the node."""
    print(f"deep: {pathlib.Path(sys.argv[0]).stem}: {sentence}", file=sys.stderr)
    sys.exit(2)


def given(otherwise):
    """What stands as key=value on the command line, over what stands in for it; numbers become numbers."""
    found = dict(otherwise)
    for word in sys.argv[1:]:
        key, is_one, value = word.partition("=")
        if not is_one or key not in otherwise:
            broken(f"{word} is not understood; there are {', '.join(otherwise)}")
        try:
            found[key] = type(otherwise[key])(value)
        except ValueError:
            broken(f"{word} is no number")
    return found


def place():
    """The number of this task, how many there are, and the Slurm node."""
    node = os.environ.get("SLURMD_NODENAME") or os.uname().nodename
    return int(os.environ.get("SLURM_PROCID", "0")), int(os.environ.get("SLURM_NTASKS", "1")), node


def say(readings):
    """Print the line."""
    print(json.dumps({"soperator": 1, "readings": readings}), flush=True)
