"""Makes a user's step open files through links that are created when slurmstepd's numbers are known; runs in the pod of slurm/up as root.

`ways.py USER WAY TEMPLATE...`. A user names files before slurmstepd exists. The program holds the lock of the job's record, for which
slurmstepd waits before it opens a file; in the meantime it creates a link with slurmstepd's pid and threads. It prints the result of each
template as JSON, one line each.
"""

import contextlib
import fcntl
import json
import os
import subprocess
import sys
import time
from pathlib import Path

JAIL, JOBS = Path("/mnt/jail/root"), Path("/run/jail/jobs")
READ = "echo OPENED; head -c 4096"
WRITE = "echo OPENED; echo OPENED >&2"
#: What a user asks of Slurm, by the way; the name of the link is `link0`, what a job says is in `said0`.
WAYS = {
    "batch-input": f"--input=link0 --output=said0 --wrap '{READ}'",
    "batch": f"--output=link0 --wrap '{WRITE}'",
    "batch-chdir": "--chdir=$PWD/link0 --output=$PWD/said0 --wrap 'test -e marker && echo OPENED'",
    "array": f"--array=0 --output=said%a --error=link%a --open-mode=append --wrap '{WRITE}'",
}


def as_user(user: str, command: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        ["su", user, "-c", f"cd; {command}"],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        stdin=subprocess.DEVNULL,
        text=True,
    )


def slurmstepds() -> set[int]:
    return {
        int(each)
        for each in subprocess.run(
            ["pgrep", "-x", "slurmstepd"], check=False, stdout=subprocess.PIPE, text=True
        ).stdout.split()
    }


def outside(pid: int) -> int:
    """Return a thread of slurmstepd that stays in the pod."""
    own = Path("/proc/self/ns/mnt").readlink()
    for thread in Path(f"/proc/{pid}/task").iterdir():
        if thread.name != str(pid) and (thread / "ns/mnt").readlink() == own:
            return int(thread.name)
    raise SystemExit("no thread of slurmstepd is in the pod's mounts: the attempts by a thread mean nothing")


def newcomer(before: set[int]) -> int:
    """Return the new slurmstepd, as soon as its main thread waits for the lock."""
    end = time.monotonic() + 20
    while time.monotonic() < end:
        for pid in slurmstepds() - before:
            with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # one that has ended meanwhile
                if Path(f"/proc/{pid}/task/{pid}/syscall").read_text().startswith("73 "):
                    return pid
        time.sleep(0.005)
    raise SystemExit("no slurmstepd came to the lock")


def try_one(user: str, way: str, job: str, template: str) -> dict[str, str]:
    """Run one step: it waits for the lock, the link is created, and the step continues."""
    inside = JAIL / ("root" if user == "root" else f"home/{user}")
    link, said = inside / "link0", inside / "said0"
    for each in (link, said):
        each.unlink(missing_ok=True)
    before = slurmstepds()
    own = as_user(user, f"sbatch --parsable --hold -t 1 {WAYS[way]}").communicate()[0].strip().partition("_")[0]
    record = JOBS / own
    record.mkdir(mode=0o700, exist_ok=True)
    lock = os.open(record, os.O_RDONLY)
    fcntl.flock(lock, fcntl.LOCK_EX)
    process = as_user(user, f"scontrol release {own}")
    pid = newcomer(before)
    slurmd, holder = Path("/run/slurmd.pid").read_text().strip(), (JOBS / job / "pid").read_text().split()[0]
    path = template.format(stepd=pid, tid=outside(pid), slurmd=slurmd, holder=holder)
    link.symlink_to(path)
    os.close(lock)
    text = process.communicate(timeout=30)[0]
    end = time.monotonic() + 20
    while Path(f"/proc/{pid}").exists() and time.monotonic() < end:
        time.sleep(0.01)
    return {"path": path, "said": text + (said.read_text(errors="replace") if said.exists() else "")}


def main() -> None:
    user, way, *templates = sys.argv[1:]
    job = as_user(user, "sbatch --parsable -n1 --output=/dev/null --wrap 'sleep 600'").communicate()[0].strip()
    while not (JOBS / job / "pid").exists():
        time.sleep(0.01)
    try:
        for template in templates:
            print(json.dumps(try_one(user, way, job, template)), flush=True)
    finally:
        subprocess.run(["scancel", job], check=False)


if __name__ == "__main__":
    main()
