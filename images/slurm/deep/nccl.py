"""Measures the bus bandwidth of all-reduce between GPUs with all_reduce_perf of nccl-tests (or rccl-tests), which must be in the jail.

It uses one large size only: the program's own average is over all sizes, and small ones hide a slow link. A program that was built without
MPI measures each node separately even if several take part; that is reported as an error, not as a reading.
"""

import os
import re
import shutil
import subprocess

import output

_NAMES = ("all_reduce_perf", "all_reduce_perf_mpi")
_FOLDERS = ("/opt/nccl-tests/build", "/opt/nccl_tests/build", "/usr/local/nccl-tests/build", "/opt/rccl-tests/build")
_RANK = re.compile(r"^#\s+Rank\s+\d+\s.*?\son\s+(?P<host>\S+)\s+device\s+\d+\s+\[[^\]]*\]\s+(?P<model>.*\S)", re.M)
_WRONG = re.compile(r"^# Out of bounds values\s*:\s*(\d+)", re.M)


def parse(text):
    """Return the reading in the program's output: bus bandwidth in GB/s of the last size, number of wrong sums, and the GPUs that took part."""
    ranks = [match.groupdict() for match in _RANK.finditer(text)]
    rows = [line.split() for line in text.splitlines() if re.match(r"\s*\d+\s+\d+\s+[a-z]", line)]
    if not ranks or not rows:
        return None
    # size, count, type, redop, root, and then once or twice (out of place, in place): time, algbw, busbw, wrong
    numbers = rows[-1][5:]
    counted = _WRONG.search(text)
    wrong = int(counted.group(1)) if counted else sum(int(each) for each in numbers[3::4] if each.isdigit())
    models = sorted({each["model"] for each in ranks})
    hosts = list(dict.fromkeys(each["host"] for each in ranks))
    try:
        busbw = max(float(each) for each in numbers[2::4])
    except ValueError:
        return None
    return {"busbw": busbw, "wrong": wrong, "ranks": len(ranks), "model": ", ".join(models), "hosts": hosts}


def reading(found, gpus, tasks, node):
    """Return the reading, or a sentence if some tasks did not take part."""
    if found["ranks"] != gpus * tasks:
        built = ": was it built with MPI?" if tasks > 1 and found["ranks"] == gpus else ""
        return f"{found['ranks']} of {gpus * tasks} GPUs took part{built}"
    hosts = found.pop("hosts")
    names = " ".join(hosts) if len(hosts) == tasks <= 64 else "*"
    return {"of": node if tasks == 1 else names, "nodes": tasks, **found}


def program(tasks):
    """Return the path of the program; for several nodes the one with MPI is preferred."""
    path = os.pathsep.join([os.environ.get("PATH", ""), *_FOLDERS])
    for name in _NAMES[:: -1 if tasks > 1 else 1]:
        found = shutil.which(name, path=path)
        if found:
            return found
    return output.broken("needs all_reduce_perf of nccl-tests in the jail")


def main():
    """Run the program in every task; task 0 reads its output."""
    rank, tasks, node = output.place()
    asked = output.given({"gpus": 8, "size": "8G", "iterations": 20})
    words = [program(tasks), "-b", asked["size"], "-e", asked["size"], "-g", str(asked["gpus"]), "-c", "1"]
    done = subprocess.run(
        [*words, "-w", "5", "-n", str(asked["iterations"])],
        capture_output=True,
        text=True,
        check=False,
    )
    if rank:
        if done.returncode:
            output.broken(
                f"all_reduce_perf ended with {done.returncode}: {(done.stderr or done.stdout).strip()[-200:]}"
            )
        return
    found = parse(done.stdout)
    if not found:
        output.broken(
            f"all_reduce_perf ended with {done.returncode} and no result: {(done.stderr or done.stdout).strip()[-300:]}"
        )
    answer = reading(found, asked["gpus"], tasks, node)
    if isinstance(answer, str):
        output.broken(answer)
    output.say([answer])


if __name__ == "__main__":
    main()
