"""Gets the CRD of mariadb-operator's kind MariaDB, against which a test validates our object, from its Go module, whose checksum Go verifies."""

import json
import subprocess
import sys
from pathlib import Path

from local import golang
from local.paths import cache
from local.progress import Failure, say

MODULE = "github.com/mariadb-operator/mariadb-operator@v0.38.1"
_INSIDE = "config/crd/bases/k8s.mariadb.com_mariadbs.yaml"


def _place() -> Path:
    return cache() / "mariadb-operator" / MODULE.rpartition("@")[2] / "mariadbs.yaml"


def find() -> Path:
    """Return the path of the CRD; raises Failure if it is missing."""
    kept = _place()
    if not kept.exists():
        raise Failure("the CRD of mariadb-operator is missing: `python3 -m local.mariadb_crd` gets it")
    return kept


def fetch() -> None:
    """Return the path of the CRD; downloads it once, through the Go module proxy."""
    kept = _place()
    if kept.exists():
        return
    command = [str(golang.find()), "mod", "download", "-json", MODULE]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd="/", env=golang.environment())
    if done.returncode:
        raise Failure(f"{MODULE} cannot be downloaded: {(done.stdout + done.stderr)[-500:]}")
    kept.parent.mkdir(parents=True, exist_ok=True)
    new = kept.with_suffix(".new")
    new.write_text(Path(json.loads(done.stdout)["Dir"], _INSIDE).read_text())
    new.rename(kept)
    say(f"mariadb-operator: the CRD of {MODULE.rpartition('@')[2]} is here")


if __name__ == "__main__":
    try:
        fetch()
    except Failure as error:
        sys.exit(str(error))
