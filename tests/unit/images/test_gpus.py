"""The script that numbers a worker's GPUs."""

import subprocess
from pathlib import Path

SCRIPT = Path(__file__).parents[3] / "images/slurm/gpus"


def number(folder: Path, wanted: int, *names: str) -> "subprocess.CompletedProcess[str]":
    """What the script does on a node with these devices."""
    for name in names:
        (folder / name).symlink_to("/dev/null")
    script = 'set -euo pipefail; complain() { echo "$*" >&2; exit 1; }; . "$1"; number_gpus "$2" "$3" "$4"'
    words = [str(SCRIPT), str(wanted), f"{folder}/nvidia[0-9]*", f"{folder}/gpus"]
    return subprocess.run(["bash", "-c", script, "bash", *words], capture_output=True, text=True, check=False)


def test_gpus_are_numbered_in_the_order_of_their_own_numbers(tmp_path: Path) -> None:
    """nvidia10 comes behind nvidia2, and what is no single GPU has no number."""
    (tmp_path / "nvidia7").touch()
    done = number(tmp_path, 2, "nvidia10", "nvidia2", "nvidiactl", "nvidia-uvm")
    assert done.returncode == 0, done.stderr
    found = {path.name: path.readlink().name for path in (tmp_path / "gpus").iterdir()}
    assert found == {"0": "nvidia2", "1": "nvidia10"}


def test_too_few_gpus_are_refused_with_both_numbers(tmp_path: Path) -> None:
    """The sentence names what is there, what is wanted, and the fields to correct."""
    done = number(tmp_path, 8, "nvidia0")
    assert done.returncode == 1
    assert "This pod has 1 of the 8 GPUs of its NodeSet" in done.stderr
    assert "spec.gpu.count" in done.stderr
    assert "spec.config.extraLines.gres" in done.stderr
