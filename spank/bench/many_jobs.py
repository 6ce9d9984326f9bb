"""Creates and removes the namespaces of many jobs one after the other and counts leaks: `many_jobs.py [--jobs 10000]` (root).

Each job is a step and an epilog of the tests' fake slurmstepd, in a pod with a user namespace. After each tenth of the jobs the pod's
processes, mounts, namespaces and open files are counted. The exit code is 1 if a count has grown.
"""

import argparse
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from pods import HERE, PODS, SPANK

SCRIPT = r"""
for tenth in $(seq 10); do
	for i in $(seq {each}); do
		job=$((tenth * 1000000 + i))
		STEPD_ARGUMENTS=timing STEPD_JOB=$job {stepd} {plugin} remote 0 1000 {plan} 'echo x >/tmp/x' >>/run/out 2>&1
		STEPD_JOB=$job {stepd} {plugin} epilog 0 0 {plan} >>/run/out 2>&1
	done
	sleep 1
	echo "$(ls -d /proc/[0-9]* | wc -l) $(wc -l </proc/self/mountinfo) $(readlink /proc/[0-9]*/ns/* | sort -u | wc -l)" \
		"$(ls -A {scratch} /run/jail/jobs | wc -l) $(sed -n 's/.*jail: namespaces of the job made in \(.*\) us/\1/p' /run/out | tr '\n' ',')"
	grep -c 'task0 0' /run/out >&2; >/run/out
done
"""


def build(folder: Path) -> None:
    """Compile the plugin and the fake slurmstepd, without sanitizers."""
    make = ["make", "-s", "-C", str(SPANK), f"BUILD={folder}", f"CPPFLAGS=-I{HERE}/stub"]
    subprocess.run([*make, f"{folder}/spank_jail.so"], check=True)
    stand_in = [
        "cc",
        "-O2",
        f"-I{HERE}/stub",
        "-rdynamic",
        "-o",
        str(folder / "stepd"),
        str(HERE / "stepd.c"),
        "-ldl",
        "-lpthread",
    ]
    subprocess.run(stand_in, check=True)


def make_jail(folder: Path) -> Path:
    """Create a jail of empty folders with the machine's /usr; return its plan."""
    root = folder / "root"
    for name in ("usr", "etc", "tmp", "proc", "dev", "sys", "run"):
        (root / name).mkdir(parents=True)
    for name in ("bin", "lib", "lib64"):
        (root / name).symlink_to(f"usr/{name}")
    (folder / "scratch").mkdir()
    lines = [
        ("root", str(root), "/", "-", "-"), ("rbind", "/usr", "/usr", "ro", "-"), ("scratch", str(folder / "scratch"), "/tmp", "-", "-"),
        ("proc", "-", "/proc", "-", "-"), ("dev", "-", "/dev", "minimal", "-"), ("sys", "-", "/sys", "ro", "-"),
    ]  # fmt: skip
    (folder / "plan").write_text("".join("\t".join(line) + "\n" for line in lines))
    return folder / "plan"


def main() -> int:
    """Run the jobs, print a table, and return whether a count has grown."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=10000)
    said = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        build(folder)
        words = {
            "stepd": folder / "stepd",
            "plugin": folder / "spank_jail.so",
            "plan": make_jail(folder),
            "scratch": folder / "scratch",
        }
        script = SCRIPT.format(each=said.jobs // 10, **words)
        command = [*PODS["userns-move"].words(), "--", "bash", "-c", script]
        done = subprocess.run(command, check=True, text=True, capture_output=True)
    ran = sum(int(line) for line in done.stderr.split())
    print("| jobs | processes | mounts | namespaces | folders | median µs to make |\n|---|---|---|---|---|---|")
    rows = [line.split() for line in done.stdout.splitlines()]
    for number, (*counts, times) in enumerate(rows, 1):
        median = statistics.median(int(each) for each in times.strip(",").split(","))
        print(f"| {number * said.jobs // 10} | {' | '.join(counts)} | {median:.0f} |")
    grown = any(row[:4] != rows[0][:4] for row in rows)
    print(f"\n{ran} of {said.jobs} jobs ran their task; " + ("something grew" if grown else "nothing grew") + ".")
    return int(grown or ran != said.jobs)


if __name__ == "__main__":
    sys.exit(main())
