"""`python3 -m local.zipapp`: builds the command line as one file, build/soperator.pyz, and the files with which krew installs it as `kubectl slurm`.

shiv packs the pinned packages with a start script that unpacks them once, because compiled modules cannot be loaded from a zip file. So the
file works with one release of Python and one architecture only, and prints an error on any other.
"""

import gzip
import hashlib
import io
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

from local import pinned
from local.paths import REPOSITORY
from local.progress import say
from soperator import __version__

BUILD = REPOSITORY / "build"
#: The address under which a release is published, for krew's manifest; `krew install --archive` needs none.
ADDRESS = "RELEASE_URL"
_NO_ADDRESS = "https://release-url-is-not-set.invalid"
#: Pins the setuptools with which pip builds a wheel of the repository.
BUILDER = {"PIP_CONSTRAINT": str(REPOSITORY / "requirements/build.txt")}
#: Runs after unpacking, before the first import.
PREAMBLE = """\
#!/usr/bin/env python3
import platform
import sys

MADE_FOR = {made_for!r}
if (sys.version_info[0], sys.version_info[1], platform.machine()) != MADE_FOR:
    sys.exit(
        "soperator.pyz is for Python %s.%s on %s, and this is Python %s.%s on %s: run it with the former, make another with `make zipapp`, or use pip"
        % (*MADE_FOR, sys.version_info[0], sys.version_info[1], platform.machine())
    )
"""


def main() -> None:
    """Build both files, and print their paths."""
    say(f"{build(BUILD)}: the command line for Python {sys.version_info[0]}.{sys.version_info[1]}")
    say(f"{write_plugin(BUILD, BUILD / 'soperator.pyz', os.environ.get(ADDRESS, _NO_ADDRESS))}: the plugin for krew")


def build(folder: Path) -> Path:
    """Build the file; the first build needs the package index."""
    shiv, staged = pinned.build("shiv"), folder / "zipapp"
    shutil.rmtree(staged, ignore_errors=True)
    pip = [
        sys.executable,
        "-m",
        "pip",
        "install",
        "--quiet",
        "--disable-pip-version-check",
        "--no-compile",
        f"--target={staged}",
    ]
    _run([*pip, "--require-hashes", f"--requirement={REPOSITORY}/requirements/runtime.txt"])
    shutil.rmtree(REPOSITORY / "build/lib", ignore_errors=True)  # setuptools packs what a former build has left there
    _run([*pip, "--no-deps", "--upgrade", str(REPOSITORY)], os.environ | BUILDER)
    _forget_the_build(staged)
    preamble = folder / "preamble.py"
    preamble.write_text(PREAMBLE.format(made_for=(sys.version_info[0], sys.version_info[1], platform.machine())))
    preamble.chmod(0o755)
    path = folder / "soperator.pyz"
    words = [
        "--compressed",
        "--reproducible",
        "--python",
        "/usr/bin/env python3",
        "--preamble",
        str(preamble),
        "--entry-point",
        "soperator.cli.__main__:main",
    ]
    _run([str(shiv), "-m", "shiv", "--site-packages", str(staged), *words, "--output-file", str(path)])
    return path


def _forget_the_build(staged: Path) -> None:
    """Remove what differs by machine: paths of this Python in pip's start scripts, of the repository in direct_url.json, and the umask in modes."""
    shutil.rmtree(staged / "bin", ignore_errors=True)
    for path in staged.glob("*.dist-info/direct_url.json"):
        path.unlink()
    for path in staged.glob("*.dist-info/RECORD"):
        lines = path.read_text().splitlines(keepends=True)
        path.write_text("".join(line for line in lines if not re.match(r"(\.\./)*bin/|[^,]*/direct_url\.json,", line)))
    for path in staged.rglob("*"):
        path.chmod(0o755 if path.is_dir() or path.stat().st_mode & 0o100 else 0o644)


def write_plugin(folder: Path, program: Path, address: str) -> Path:
    """Write the archive with the plugin and its license, and krew's manifest, which has the archive's hash."""
    archive, content_of = folder / "kubectl-slurm.tar.gz", io.BytesIO()
    with tarfile.open(fileobj=content_of, mode="w") as packed:
        for name, source, mode in (("kubectl-slurm", program, 0o755), ("LICENSE", REPOSITORY / "LICENSE", 0o644)):
            content = source.read_bytes()
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode = len(content), mode
            packed.addfile(entry, io.BytesIO(content))
    archive.write_bytes(gzip.compress(content_of.getvalue(), mtime=0))  # the same content, the same hash
    path = folder / "slurm.yaml"
    path.write_text(json.dumps(manifest(hashlib.sha256(archive.read_bytes()).hexdigest(), address), indent=1) + "\n")
    return path


def manifest(digest: str, address: str) -> dict[str, object]:
    """Return krew's manifest of the plugin as JSON, which is also YAML."""
    linux = {
        "selector": {"matchLabels": {"os": "linux", "arch": "amd64"}},
        "uri": f"{address}/kubectl-slurm.tar.gz",
        "sha256": digest,
        "bin": "kubectl-slurm",
    }
    return {
        "apiVersion": "krew.googlecontainertools.github.com/v1alpha2",
        "kind": "Plugin",
        "metadata": {"name": "slurm"},
        "spec": {
            "version": f"v{__version__}",
            "shortDescription": "Inspect and operate Slurm clusters on Kubernetes",
            "description": "Status, logs, logins, jobs, drains and support archives of the Slurm clusters that the Soperator runs.",
            "caveats": "It needs the release of Python 3 for which it was built; any other prints the required release.",
            "platforms": [linux],
        },
    }


def _run(words: list[str], environment: dict[str, str] | None = None) -> None:
    done = subprocess.run(words, cwd=REPOSITORY, env=environment, check=False)
    if done.returncode:
        sys.exit(f"{words[0]} ended with {done.returncode}; its errors are above.")


if __name__ == "__main__":
    main()
