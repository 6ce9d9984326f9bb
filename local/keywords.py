"""`python3 -m local.keywords`: which settings slurm.conf can hold, asked of Slurm itself.

Slurm has no list of them that a program can read. But slurmctld names every key that it does not know, in one go, before it looks at a value:
so each word of its library is offered as a key, and what it does not complain about is one. Needs root, and the Debian root of
`local/slurm_root.py`.
"""

import re
import subprocess
import tempfile
from collections.abc import Iterable
from pathlib import Path

from local.paths import REPOSITORY
from local.progress import Failure, say
from local.slurm_root import ROOT

FILE = REPOSITORY / "src/soperator/slurm/settings/keywords.py"
#: Words that are no setting of ours to offer: after the first three slurmctld ends at once, the last is read before keys are.
_NOT_OFFERED = frozenset({"frontendaddr", "frontendname", "frontendport", "include"})
_UNKNOWN = re.compile(r"unrecognized key: (\S+)")
_RUN = 'mount --bind "$2" "$1/mnt" && cd / && exec chroot "$1" /usr/sbin/slurmctld -D -f /mnt/slurm.conf'


def known(root: Path = ROOT) -> list[str]:
    """The keys of slurm.conf, each in one spelling, sorted."""
    libraries = sorted(root.glob("usr/lib/*/slurm-wlm/libslurmfull.so"))
    if not libraries:
        raise Failure(f"there is no Slurm in {root}; python3 -m local.slurm_root makes it")
    words = {each.decode() for each in re.findall(rb"[A-Za-z][A-Za-z0-9_]{2,40}", libraries[0].read_bytes())}
    offered = {word for word in words if word.lower() not in _NOT_OFFERED}
    found: dict[str, str] = {}
    for word in sorted(offered - _refused(root, offered), key=lambda each: (each.isupper() or each.islower(), each)):
        found.setdefault(word.lower(), word)
    return sorted(found.values(), key=str.lower)


def _refused(root: Path, offered: Iterable[str]) -> set[str]:
    """The words that slurmctld does not know."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "slurm.conf").write_text("".join(f"{word}=1\n" for word in sorted(offered)))
        words = ["unshare", "-m", "-n", "sh", "-c", _RUN, "sh", str(root), folder]
        done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)
    said = done.stderr + done.stdout
    if "Unable to process configuration file" not in said:
        raise Failure(f"slurmctld did not read the whole file:\n{said[-2000:]}")
    return set(_UNKNOWN.findall(said))


def version(root: Path = ROOT) -> str:
    """Slurm's version in the root, as major.minor."""
    done = subprocess.run(["chroot", str(root), "slurmctld", "-V"], capture_output=True, text=True, check=True)
    return ".".join(done.stdout.split()[-1].split(".")[:2])


def module(keys: Iterable[str], of: str) -> str:
    """The Python module that holds them."""
    lines = "".join(f"{key}\n" for key in keys)
    return (
        f'"""The settings that slurm.conf of Slurm {of} can hold, as `python3 -m local.keywords` found them: generated, not written."""\n\n'
        f'VERSION = "{of}"\n\n_NAMES = """\n{lines}"""\nSLURM_CONF = frozenset(_NAMES.split())\n'
    )


if __name__ == "__main__":
    FILE.write_text(module(known(), version()))
    say(f"wrote {FILE}")
