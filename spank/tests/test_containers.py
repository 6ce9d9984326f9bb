"""Containers in a real Slurm 24.11: srun, sbatch and salloc with the options of Pyxis, as an ordinary user in the jail.

The tests need skopeo, umoci and squashfs-tools in the root of test_slurm.py. The image has two layers and comes from a registry that these
tests run (oci.py).
"""

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pods import HERE, PODS, SPANK
from trixie import JAIL, KINDS, PLAN, TRIXIE, Slurm, wait_idle, wait_until_ready

NEEDED = ("usr/include/slurm/spank.h", "usr/bin/skopeo", "usr/bin/umoci", "usr/bin/mksquashfs")
PORT = 5000
PROGRAMS = ["sh", "ls", "cat", "id", "sleep", "touch", "env", "grep", "true", "hostname", "stat", "mkdir", "rm", "seq"]
IMAGE = f"10.99.0.1:{PORT}#tests/small:one"
PLAIN = f"10.99.0.1:{PORT}#tests/small:plain"

pytestmark = [
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root"),
    pytest.mark.skipif(
        not all((TRIXIE / name).exists() for name in NEEDED),
        reason=f"no Slurm, skopeo, umoci or squashfs-tools in {TRIXIE}",
    ),
]


@pytest.fixture(scope="module")
def built(plugin: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the programs of the other tests with this plugin and its helper: both with UBSan, the helper also with ASan, which slurmstepd does not
    load.
    """
    folder = tmp_path_factory.mktemp("containers")
    flags = "-O1 -g -fno-omit-frame-pointer -fno-sanitize-recover=all -fsanitize=undefined"
    make = "make -s -C /mnt/container BUILD=/srv"
    script = f"""mount --bind "$1" "$3/mnt" && mount --bind "$2" "$3/srv" && chroot "$3" sh -ec '
        {make} /srv/spank_container.so CFLAGS="{flags}" && rm /srv/*.o && {make} /srv/container CFLAGS="{flags},address"'"""
    subprocess.run(["unshare", "-m", "sh", "-c", script, "sh", str(SPANK), str(folder), str(TRIXIE)], check=True)
    subprocess.run(["cp", "-a", *map(str, plugin.iterdir()), str(folder)], check=True)
    return folder


@pytest.fixture(scope="module")
def layout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return an image of a few programs of the trixie root."""
    folder = tmp_path_factory.mktemp("image") / "layout"
    programs = [f"/usr/bin/{name}" for name in PROGRAMS]
    make = [sys.executable, str(HERE / "oci.py"), "make", str(folder), "--root", str(TRIXIE), "--plain", *programs]
    subprocess.run(make, check=True, capture_output=True)
    return folder


@pytest.fixture(scope="module", params=KINDS)
def slurm(
    built: Path, layout: Path, request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Slurm]:
    """Start Slurm in a pod (`make test-all`: in both kinds), with the image as an archive in alice's home, and the registry."""
    kind = PODS[request.param]
    work = tmp_path_factory.mktemp("slurm")
    up = [str(HERE / "slurm/up"), str(TRIXIE), str(work), str(built)]
    with (work / "up.log").open("w") as log:
        pod = subprocess.Popen([*kind.words(), "--net", "--", *up], stdout=log, stderr=log)
    server = None
    try:
        slurm = wait_until_ready(pod, kind.userns, work / "up.log")
        server = serve(slurm, layout, PORT)
        give(slurm, "/home/alice/image.tar", archive_of_one(layout, work))
        yield slurm
    finally:
        if server is not None:
            server.kill()
            server.wait()
        pod.kill()
        pod.wait()


def archive_of_one(layout: Path, work: Path) -> bytes:
    """Return the layout as an archive of its first image only, because an archive with two images is ambiguous."""
    index = json.loads((layout / "index.json").read_text())
    (work / "index.json").write_text(json.dumps({**index, "manifests": index["manifests"][:1]}))
    words = ["tar", "-C", str(layout), "-c", "blobs", "oci-layout", "-C", str(work), "index.json"]
    return subprocess.run(words, check=True, capture_output=True).stdout


def serve(slurm: Slurm, layout: Path, port: int, *more: str) -> "subprocess.Popen[bytes]":
    """Start a registry in the pod's network; it writes its log beside the layout."""
    words = [sys.executable, str(HERE / "oci.py"), "serve", str(layout), str(port), *more]
    with (layout / f"log-{port}").open("w") as log:
        server = subprocess.Popen(["nsenter", "-t", str(slurm.pid), "-n", *words], stdout=log, stderr=log)
    slurm.until(f"bash -c ': </dev/tcp/10.99.0.1/{port}' 2>/dev/null")
    return server


def give(slurm: Slurm, path: str, content: bytes) -> None:
    """Write a file that alice owns in the jail."""
    user_namespace = ["-U", "--preserve-credentials"] if slurm.userns else []
    inside = ["nsenter", "-t", str(slurm.pid), "-m", "-p", *user_namespace]
    script = f"cat >{JAIL}{path}; chown 1000:1000 {JAIL}{path}"
    subprocess.run([*inside, "sh", "-c", script], input=content, check=True)


def srun(slurm: Slurm, options: str, command: str, timeout: float = 60) -> Any:
    """Run srun as alice."""
    return slurm.sh(f"ENROOT_ALLOW_HTTP=y srun -Q {options} {command}", user="alice", timeout=timeout)


def test_an_image_of_a_registry(slurm: Slurm) -> None:
    """A step runs in the image: its files, its working folder, its user, its environment."""
    command = "sh -c 'pwd; cat /etc/word; ls /etc/gone; id -un; echo $FROM_IMAGE; ls -d /in-the-*'"
    done = srun(slurm, f"--container-image={IMAGE}", command)
    assert done.stdout.split() == ["/work/here", "second", "alice", "image"], done.stderr


def test_forms_of_an_image(slurm: Slurm, layout: Path) -> None:
    """docker's form, docker://, a digest, an archive and a saved squashfs file refer to the same image."""
    digest = json.loads((layout / "index.json").read_text())["manifests"][0]["digest"]
    plain = f"10.99.0.1:{PORT}/tests/small"
    for image in (f"{plain}:one", f"docker://{plain}:one", f"{plain}@{digest}", "./image.tar", "/home/alice/image.tar"):
        done = srun(slurm, f"--container-image={image}", "cat /etc/word")
        assert done.stdout == "second\n", f"{image}: {done.stderr}"
    done = srun(slurm, "--container-image=./image.tar --container-save=saved.sqsh", "sh -c 'echo third >/etc/word'")
    assert (done.stdout, done.stderr, done.returncode) == ("", "", 0)
    done = srun(
        slurm, "--container-image=./saved.sqsh", "sh -c 'cat /etc/word; pwd; echo $FROM_IMAGE; ls -d /etc/closed'"
    )
    assert done.stdout == "third\n/work/here\nimage\n/etc/closed\n", done.stderr


def test_a_tag_is_asked_once_for_a_step_and_fetched_once_for_a_user(slurm: Slurm, layout: Path) -> None:
    """Eight tasks request the tag from the registry once, and no blob that is in the user's cache."""
    log = layout / f"log-{PORT}"
    srun(slurm, f"--container-image={IMAGE}", "true")
    before = log.read_text().splitlines()
    done = srun(slurm, f"-n4 --container-image={IMAGE}", "cat /etc/word")
    assert done.stdout == "second\n" * 4
    asked = log.read_text().splitlines()[len(before) :]
    assert [line for line in asked if "/blobs/" in line and "GET" in line] in ([], asked[-1:]), asked
    assert len([line for line in asked if "/manifests/one" in line]) == 1, asked


def test_tasks_of_a_step_share_a_container(slurm: Slurm) -> None:
    """One task reads what another one writes; the next step starts with a new container, and the jail and the image are unchanged."""
    script = (
        "sh -c 'test $SLURM_PROCID = 0 && echo word >/shared; n=0; until cat /shared 2>/dev/null; do sleep 0.05; n=$((n+1)); "
        "test $n -lt 100 || exit 1; done'"
    )
    assert srun(slurm, f"-n2 --container-image={IMAGE}", script).stdout == "word\nword\n"
    assert srun(slurm, f"--container-image={IMAGE}", "cat /shared").returncode != 0
    assert slurm.sh(f"ls {JAIL}/shared").returncode != 0


def test_the_last_of_many_tasks_finds_the_first_ones_container(slurm: Slurm) -> None:
    """A task that ends at once does not remove the container before a late task has started in it."""
    script = "sh -c 'test $SLURM_PROCID != 0 || echo word >/shared'"
    for _ in range(3):
        done = srun(slurm, f"-n4 --container-image={IMAGE} --container-save=all.sqsh", script)
        assert done.returncode == 0, done.stderr
        assert srun(slurm, "--container-image=./all.sqsh", "cat /shared").stdout == "word\n"


def test_two_jobs_that_save_to_one_path_leave_a_whole_file(slurm: Slurm) -> None:
    """Two jobs that save to the same file at the same time both succeed; the file is complete, and no other file remains."""
    give(slurm, "/home/alice/blob", os.urandom(24 << 20))
    step = f"srun -Q -n1 --container-image={IMAGE} --container-mounts=./blob:/blob --container-save=saves/both.sqsh sh -c 'cat /blob >/copy'"
    script = f"export ENROOT_ALLOW_HTTP=y; {step} & first=$!; {step}; echo $?; wait $first; echo $?"
    slurm.sh(f"install -d -o 1000 {JAIL}/home/alice/saves")
    srun(slurm, f"--container-image={IMAGE}", "true")
    for _ in range(2):
        done = slurm.sh(script, user="alice", timeout=120)
        assert (done.stdout, done.stderr) == ("0\n0\n", "")
        assert slurm.sh(f"ls -A {JAIL}/home/alice/saves").stdout == "both.sqsh\n"
    whole = srun(slurm, "--container-image=./saves/both.sqsh --container-mounts=./blob:/blob", "stat -c %s /copy")
    assert whole.stdout == f"{24 << 20}\n", whole.stderr


def test_a_save_that_cannot_work_is_refused_before_the_step(slurm: Slurm) -> None:
    """If the file cannot be written afterwards, nothing runs, and one message names the path and the reason."""
    slurm.sh(f"install -d -o 1000 {JAIL}/home/alice/folder.sqsh")
    for path, reason in {
        "/etc/x.sqsh": "Permission denied",
        "nowhere/x.sqsh": "No such file or directory",
        "folder.sqsh": "Is a directory",
    }.items():
        done = srun(slurm, f"-n2 --container-image={IMAGE} --container-save={path}", "sh -c 'echo ran'")
        assert (done.stdout, done.returncode) == ("", 1), path
        assert done.stderr.count("container: cannot save the container to") == 1, done.stderr
        assert reason in done.stderr


def test_a_save_that_fails_fails_the_step(slurm: Slurm) -> None:
    """If the file cannot be written at the end, the step prints the error once and exits with 1, as a batch job does."""
    options = f"--container-image={IMAGE} --container-mount-home --container-save=going/x.sqsh"
    for command, ran in {
        "srun -Q -n2 OPTIONS sh -c 'rm -rf /home/alice/going; echo ran'": 2,
        "sbatch -Q -W -o out.save OPTIONS --wrap 'rm -rf /home/alice/going; echo ran'": 1,
    }.items():
        slurm.sh(f"install -d -o 1000 {JAIL}/home/alice/going")
        step = f"ENROOT_ALLOW_HTTP=y {command.replace('OPTIONS', options)}"
        done = slurm.sh(step, user="alice", timeout=60)
        said = done.stdout + done.stderr if ran == 2 else slurm.read("/home/alice/out.save")
        assert done.returncode == 1, said
        assert said.count("ran\n") == ran, said
        assert said.count("container: cannot save the container to /home/alice/going/x.sqsh") == 1, said


def test_a_saved_step_ends_as_its_program_ends(slurm: Slurm) -> None:
    """The exit code and the signal of the program are those of the task, and SLURM_TASK_PID is its process."""
    options = f"--container-image={IMAGE} --container-save=ends.sqsh"
    assert srun(slurm, options, "sh -c 'exit 7'").returncode == 7
    assert srun(slurm, options, "sh -c 'kill -TERM $$'").returncode == 143
    assert srun(slurm, options, "sh -c 'test $SLURM_TASK_PID = $$'").returncode == 0
    assert srun(slurm, "--container-image=./ends.sqsh", "cat /etc/word").stdout == "second\n"


#: Stops who saves the container, and kills the task, as an attacker or `scancel` does.
SILENT = """for each in /proc/[0-9]*; do [ "$(cat $each/comm)" != container-keep ] || kill -STOP ${each#/proc/}; done; kill -9 $PPID"""


def test_a_save_whose_task_was_killed_holds_no_step(slurm: Slurm) -> None:
    """The task waits for the save. If the task was killed, slurmstepd waits for the saving process for a moment, not for six hours."""
    give(slurm, "/home/alice/silent", SILENT.encode())
    began = time.monotonic()
    options = f"--container-image={IMAGE} --container-mounts=./silent:/silent --container-save=silent.sqsh"
    assert srun(slurm, options, "sh /silent", timeout=90).returncode == 137
    assert 9 < time.monotonic() - began < 45
    assert wait_idle(slurm) == "idle none"
    assert slurm.sh(f"ls {JAIL}/home/alice | grep ^silent.sqsh$; ps -eo comm | grep container-keep").stdout == ""


def test_a_save_by_hand_that_fails_is_an_error(slurm: Slurm) -> None:
    """`container run --container-save` exits with 1 and a message if the file cannot be written."""
    run = "/opt/soperator/lib/slurm/container run --container-image=./image.tar --container-mount-home --container-save=going/x.sqsh"
    done = slurm.sh(f"srun -Q sh -c 'mkdir -p going; {run} -- rm -r /home/alice/going'", user="alice", timeout=60)
    assert (done.returncode, done.stderr.count("container: cannot save the container to")) == (1, 1), done.stderr


def test_mounts(slurm: Slurm) -> None:
    """Folders and files of the jail, read-only or not, a tmpfs with a size, and a path at itself can be mounted; a mount can be removed."""
    give(slurm, "/home/alice/file", b"content\n")
    mounts = "/home/alice:/mnt/deep/home,./file:/etc/one:ro,tmpfs:/mnt/t:size=1m+mode=700,/usr/share,umount:/tmp"
    command = (
        "sh -c 'cat /etc/one /mnt/deep/home/file; echo a >/mnt/deep/home/written; echo b >>/etc/one || echo refused; "
        "stat -f -c %b:%s /mnt/t; ls /usr/share | grep -c .; ls /tmp'"
    )
    done = srun(slurm, f"--container-image={IMAGE} --container-mounts={mounts}", command)
    lines = done.stdout.splitlines()
    assert lines[:4] == ["content", "content", "refused", "256:4096"], done.stderr
    assert int(lines[4]) > 3
    assert lines[5:] == ["README"]
    assert slurm.sh(f"cat {JAIL}/home/alice/written; stat -c %u {JAIL}/home/alice/written").stdout == "a\n1000\n"


def test_a_home_is_mounted_only_where_asked(slurm: Slurm) -> None:
    """Without the option $HOME is an empty folder of the container; with the option, it is the user's home."""
    give(slurm, "/home/alice/file", b"content\n")
    command = "sh -c 'cd; pwd; ls; touch x'"
    assert srun(slurm, f"--container-image={IMAGE}", command).stdout == "/home/alice\n"
    assert "file" in srun(slurm, f"--container-image={IMAGE} --container-mount-home", command).stdout.split()
    assert srun(slurm, f"--container-image={IMAGE} --no-container-mount-home", command).stdout == "/home/alice\n"


def test_root_in_name(slurm: Slurm) -> None:
    """With remap-root the user has uid 0 inside, can change owners inside, and owns the files that appear outside."""
    command = "sh -c 'id -u; touch /root-file /home/alice/by-root && stat -c %u /root-file; cat /etc/closed'"
    done = srun(slurm, f"--container-image={IMAGE} --container-remap-root --container-mount-home", command)
    assert done.stdout.split() == ["0", "0", "closed"], done.stderr
    assert slurm.sh(f"stat -c %u {JAIL}/home/alice/by-root").stdout == "1000\n"
    assert srun(slurm, f"--container-image={IMAGE} --no-container-remap-root", "id -u").stdout == "1000\n"


def test_root_in_name_has_its_home_at_root(slurm: Slurm) -> None:
    """With remap-root the home is /root, as in passwd; --container-mount-home mounts the user's home there and at its own path."""
    give(slurm, "/home/alice/file", b"content\n")
    command = "sh -c 'echo $HOME; cd; ls -d /home/alice/file $PWD/file; cd ~root; pwd'"
    done = srun(slurm, f"--container-image={IMAGE} --container-remap-root --container-mount-home", command)
    assert done.stdout.split() == ["/root", "/home/alice/file", "/root/file", "/root"], done.stderr
    done = srun(slurm, f"--container-image={IMAGE} --container-remap-root", command)
    assert done.stdout.split() == ["/root", "/root"], done.stderr


def test_an_image_that_sets_home(slurm: Slurm) -> None:
    """HOME of the image applies, unless the user has mounted a home."""
    script = "sh -c 'printf \"EHOME=/image\\0W\\0\" >/.container-config; mkdir /image'"
    assert srun(slurm, f"--container-image={IMAGE} --container-save=home.sqsh", script).returncode == 0
    command = "sh -c 'echo $HOME'"
    for options, home in {
        "": "/image",
        "--container-mount-home": "/home/alice",
        "--container-remap-root": "/image",
    }.items():
        assert srun(slurm, f"--container-image=./home.sqsh {options}", command).stdout == f"{home}\n", options


def test_apt_works_as_root_in_name(slurm: Slurm) -> None:
    """With remap-root, apt-get reads a repository; for a download it changes its user and verifies the change."""
    folders = "/etc/apt/apt.conf.d /etc/apt/preferences.d /etc/apt/trusted.gpg.d /var/lib/dpkg /repo"
    folders += " /var/lib/apt/lists/partial /var/cache/apt/archives/partial"
    files = "echo 13 >/etc/debian_version; echo deb [trusted=yes] file:/repo ./ >/etc/apt/sources.list; touch /var/lib/dpkg/status /repo/Packages"
    account = "echo _apt:x:42:65534::/nonexistent:/bin/false >>/etc/passwd"
    made = srun(
        slurm, f"--container-image={IMAGE} --container-save=deb.sqsh", f'sh -c "mkdir -p {folders}; {files}; {account}"'
    )
    assert made.returncode == 0, made.stderr
    done = srun(
        slurm, "--container-image=./deb.sqsh --container-remap-root --container-mounts=/usr:/usr:ro", "apt-get update"
    )
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    assert "Reading package lists" in done.stdout


def test_a_job_without_an_environment_finds_its_home(slurm: Slurm) -> None:
    """With --export=NONE and similar options the user's cache is used, and HOME and PATH are set in the container."""
    assert srun(slurm, f"--container-image={IMAGE}", "true").returncode == 0
    command = "/bin/sh -c 'echo $HOME $PATH; ls -d /tmp/.cache'"
    done = srun(slurm, f"--export=ENROOT_ALLOW_HTTP=y --container-image={IMAGE}", command)
    assert "container: fetching" not in done.stderr
    assert done.stdout.split() == ["/home/alice", "/usr/local/bin:/usr/bin:/bin"], done.stderr


def test_what_pytorch_looks_for(slurm: Slurm) -> None:
    """An image with PYTORCH_VERSION has the address, port, size and ranks of torch.distributed; several tasks also have OMP_NUM_THREADS."""
    command = "sh -c 'echo $MASTER_ADDR $((MASTER_PORT - 61000 - SLURM_JOB_ID % 4536)) $WORLD_SIZE $RANK $LOCAL_RANK o$OMP_NUM_THREADS'"
    done = srun(slurm, f"-n2 --container-image={PLAIN}", command)
    assert sorted(done.stdout.splitlines()) == ["one 0 2 0 0 o1", "one 0 2 1 1 o1"], done.stderr
    assert srun(slurm, f"-n1 --container-image={PLAIN}", command).stdout == "one 0 1 0 0 o\n"
    own = slurm.sh(f"ENROOT_ALLOW_HTTP=y MASTER_ADDR=mine srun -Q --container-image={PLAIN} {command}", user="alice")
    assert own.stdout == "mine 0 1 0 0 o\n", own.stderr


def test_a_running_container_without_a_name_is_entered_by_its_step(slurm: Slurm) -> None:
    """--container-name=JOB.STEP selects the container of that step, JOB.batch that of the batch script; a step without a container is named in the
    error.
    """
    stay = "until [ -e /go ]; do sleep 0.1; done"
    script = (
        f"ENROOT_ALLOW_HTTP=y sbatch --parsable -o out.enter --container-image={IMAGE} --wrap 'touch /of-batch; {stay}'"
    )
    job = slurm.sh(script, user="alice").stdout.strip()
    enter = f"srun -Q --overlap --jobid={job}"
    slurm.until(f"su alice -c '{enter} --container-name={job}.batch ls /of-batch' 2>/dev/null")
    step = f"'echo $SLURM_STEP_ID >/tmp/number; touch /of-step; {stay}'"
    slurm.sh(f"ENROOT_ALLOW_HTTP=y {enter} --container-image={IMAGE} sh -c {step} >/dev/null 2>&1 &", user="alice")
    slurm.until(f"[ -s /mnt/tmp/job-{job}/number ]")
    number = slurm.sh(f"cat /mnt/tmp/job-{job}/number").stdout.strip()
    begin = time.monotonic()
    done = slurm.sh(f"{enter} --container-name={job}.{number} ls /of-step /of-batch", user="alice")
    assert (done.stdout, time.monotonic() - begin < 5) == ("/of-step\n", True), done.stderr
    done = slurm.sh(f"{enter} --container-name={job}.999 true", user="alice")
    assert f"container: no container of the step {job}.999 runs here" in done.stderr
    for name in (number, "batch"):
        assert slurm.sh(f"{enter} --container-name={job}.{name} touch /go", user="alice").returncode == 0
    assert wait_idle(slurm) == "idle none"


def test_the_working_folder(slurm: Slurm) -> None:
    """--container-workdir overrides the image's; an error names a folder that does not exist."""
    assert srun(slurm, f"--container-image={IMAGE} --container-workdir=/etc", "sh -c pwd").stdout == "/etc\n"
    done = srun(slurm, f"--container-image={IMAGE} --container-workdir=/nowhere", "sh -c pwd")
    assert (
        "container: cannot go to the working folder /nowhere in the container: No such file or directory" in done.stderr
    )
    assert (done.stdout, done.returncode) == ("", 1)


def test_the_environment(slurm: Slurm) -> None:
    """The image's variables override the user's, except those that are named; all others pass."""
    command = "sh -c 'echo $FROM_IMAGE $SHARED $OTHER $SLURM_PROCID'"
    script = f"export ENROOT_ALLOW_HTTP=y SHARED=mine OTHER=other; srun -Q --container-image={IMAGE}"
    assert slurm.sh(f"{script} {command}", user="alice").stdout == "image image other 0\n"
    assert slurm.sh(f"{script} --container-env=SHARED {command}", user="alice").stdout == "image mine other 0\n"


def test_the_locale_of_the_user_stays_outside(slurm: Slurm) -> None:
    """The container has LANG and LC_ALL of the user only if --container-env names them, because an image rarely has the user's locale."""
    script = f"export ENROOT_ALLOW_HTTP=y LANG=xx_XX LC_ALL=xx_XX; srun -Q --container-image={IMAGE}"
    command = "sh -c 'echo l:$LANG:$LC_ALL'"
    assert slurm.sh(f"{script} {command}", user="alice").stdout == "l::\n"
    assert slurm.sh(f"{script} --container-env=LANG {command}", user="alice").stdout == "l:xx_XX:\n"


def test_the_entry_point(slurm: Slurm) -> None:
    """The entry point runs only on request, once for all tasks; they receive its exported variables, and its output appears on request."""
    command = "sh -c 'echo by:$BY_ENTRYPOINT'"
    assert srun(slurm, f"--container-image={IMAGE}", command).stdout == "by:\n"
    done = srun(slurm, f"-n2 --container-image={IMAGE} --container-entrypoint --container-entrypoint-log", command)
    assert done.stdout == "by:yes\n" * 2
    assert done.stderr.count("the entry point runs") == 1
    assert "entry point" not in srun(slurm, f"--container-image={IMAGE} --container-entrypoint", command).stderr


def test_the_entry_point_leaves_each_task_its_own_variables(slurm: Slurm) -> None:
    """Ranks differ between the tasks, with an image that sets no working folder and an entry point that sets ranks itself."""
    command = "sh -c 'echo $SLURM_PROCID $SLURM_LOCALID $PMIX_RANK $RANK $LOCAL_RANK $SLURM_STEP_ID $CUDA_VISIBLE_DEVICES; pwd'"
    done = srun(slurm, f"-n2 --mpi=pmix --container-image={PLAIN} --container-entrypoint", command)
    assert sorted(done.stdout.splitlines()) == ["/", "/", "0 0 0 0 0 0", "1 1 1 1 1 0"], done.stderr


def test_a_later_step_in_a_container_with_an_entry_point_has_its_own_numbers(slurm: Slurm) -> None:
    """A step that joins a running container keeps its own step id, although the entry point ran in an earlier step."""
    box = f"--container-image={PLAIN} --container-entrypoint --container-name=box"
    first = (
        r'"echo \$SLURM_STEP_ID >/ready; n=0; until [ -e /seen ] || [ \$n -gt 600 ]; do sleep 0.1; n=\$((n+1)); done"'
    )
    second = r'"cat /ready && echo \$FROM_IMAGE \$SLURM_STEP_ID && touch /seen"'
    script = f"""
        export ENROOT_ALLOW_HTTP=y
        srun -Q -n1 --overlap {box} sh -c {first} &
        n=0; until srun -Q -n1 --overlap --container-name=box:exec sh -c {second} 2>/dev/null
        do n=$((n+1)); [ $n -lt 200 ] || break; sleep 0.1; done; wait"""
    done = slurm.sh(f"salloc -Q -n1 sh -c '{script}'", user="alice", timeout=120)
    first, word, second = done.stdout.split()
    assert word == "changed", done.stderr
    assert first != second, done.stderr


def test_the_entry_point_gets_what_is_named_and_its_changes_are_taken_back(slurm: Slurm) -> None:
    """The entry point has the image's variables, the job's number and those of --container-env; all tasks receive its changes, additions and
    removals.
    """
    step = f"srun -Q --container-image={PLAIN} --container-entrypoint --container-entrypoint-log --container-env=NAMED"
    command = "sh -c 'echo $FROM_IMAGE $GIVEN d:$DROPPED $OTHER'"
    done = slurm.sh(f"export ENROOT_ALLOW_HTTP=y OTHER=other NAMED=named; {step} {command}", user="alice")
    word, given, dropped, other = done.stdout.split()
    assert (word, dropped, other) == ("changed", "d:", "other"), done.stderr
    assert given.startswith("/named//"), given
    assert given.split("/")[3].isdigit(), given


def test_an_entry_point_that_fails_says_its_code(slurm: Slurm) -> None:
    """The message names the entry point and how it ended, and the step exits with 1."""
    step = f"srun -Q --container-image={PLAIN} --container-entrypoint --container-env=NAMED true"
    done = slurm.sh(f"ENROOT_ALLOW_HTTP=y NAMED=fail {step}", user="alice")
    sentence = "container: the image's entry point /entrypoint-plain ended with code 3 and did not execute its command; try --no-container-entrypoint"
    assert (done.stderr.count(sentence), done.returncode) == (1, 1), done.stderr


def test_an_image_cannot_set_what_belongs_to_a_task(slurm: Slurm) -> None:
    """A rank or a list of GPUs of the step overrides one in an image's environment."""
    script = "sh -c 'printf \"ESLURM_PROCID=9\\0EPMIX_RANK=9\\0ERANK=9\\0EKEPT=9\\0W\\0\" >/.container-config'"
    assert srun(slurm, f"--container-image={PLAIN} --container-save=odd.sqsh", script).returncode == 0
    done = srun(slurm, "-n2 --mpi=pmix --container-image=./odd.sqsh", "sh -c 'echo $SLURM_PROCID $PMIX_RANK $KEPT'")
    assert sorted(done.stdout.splitlines()) == ["0 0 9", "1 1 9"], done.stderr


def test_a_read_only_container(slurm: Slurm) -> None:
    """--container-readonly makes the container's own files read-only, and the jail's /tmp stays writable."""
    done = srun(slurm, f"--container-image={IMAGE} --container-readonly", "sh -c 'touch /x; touch /tmp/x && echo can'")
    assert done.stdout == "can\n"
    assert "Read-only file system" in done.stderr
    assert srun(slurm, f"--container-image={IMAGE} --container-writable", "touch /x").returncode == 0


def test_a_container_with_a_name_lasts_as_long_as_its_job(slurm: Slurm) -> None:
    """A later step uses the container of an earlier one, without an image; a parallel step joins it; the next job does not see it."""
    script = f"""
        export ENROOT_ALLOW_HTTP=y; n=--container-name=box
        srun -Q -n1 --container-image={IMAGE} $n sh -c 'echo one >/kept'
        srun -Q -n1 $n cat /kept
        srun -Q -n1 $n:create --container-image={IMAGE} true; echo create $?
        srun -Q -n1 $n:exec true; echo exec $?
        srun -Q -n1 --exact $n sh -c '
            echo here >/joined; t=0; until [ -e /seen ]; do sleep 0.1; t=$((t+1)); [ $t -lt 600 ] || exit 9; done' &
        t=0; until srun -Q -n1 --exact --overlap $n:exec sh -c 'cat /joined && touch /seen' 2>/dev/null; do
            t=$((t+1)); [ $t -lt 40 ] || break; sleep 0.1; done
        wait $!; echo joined $?
        srun -Q -n1 --container-image={IMAGE} cat /kept"""
    done = slurm.sh(
        f"salloc -Q -n2 sh -c '{script.replace(chr(39), chr(39) + chr(92) + chr(39) * 2)}'", user="alice", timeout=120
    )
    assert done.stdout.split() == ["one", "create", "1", "exec", "1", "here", "joined", "0"], done.stderr
    assert "container: there is a container box already" in done.stderr
    assert "container: the container box does not run" in done.stderr
    done = srun(slurm, "--container-name=box", "true")
    assert "container: there is no container box here, and no --container-image to make it from" in done.stderr


def test_a_batch_script_runs_in_its_container(slurm: Slurm) -> None:
    """With sbatch the script itself runs in the container; srun works there, in a container of the same image or of another one."""
    lines = [
        "#!/bin/sh",
        f"#SBATCH --container-image={IMAGE.replace('#', '/')} -n2 -o out.box",
        "#SBATCH --container-mounts=/usr",
        "cat /etc/word",
        "srun -Q -n1 --container-workdir=/ cat /etc/word 2>/dev/null",
        "srun -Q -n1 --container-image=/home/alice/other.sqsh --container-mounts=/mnt cat /etc/word 2>/dev/null",
    ]
    srun(slurm, f"--container-image={IMAGE} --container-save=other.sqsh", "sh -c 'echo other >/etc/word'")
    text = "\n".join(lines)
    done = slurm.sh(f"ENROOT_ALLOW_HTTP=y sbatch -W <<'EOF'\n{text}\nEOF", user="alice", timeout=60)
    assert slurm.read("/home/alice/out.box").splitlines() == ["second", "second", "other"], done.stderr


def test_variables_in_the_place_of_options(slurm: Slurm) -> None:
    """PYXIS_CONTAINER_… sets the values of options, and an option overrides its variable."""
    script = f"export ENROOT_ALLOW_HTTP=y PYXIS_CONTAINER_IMAGE={IMAGE} PYXIS_CONTAINER_REMAP_ROOT=1"
    assert slurm.sh(f"{script}; srun -Q sh -c 'id -u; cat /etc/word'", user="alice").stdout == "0\nsecond\n"
    assert slurm.sh(f"{script}; srun -Q --no-container-remap-root id -u", user="alice").stdout == "1000\n"


def test_namespaces_of_a_container_of_its_own(slurm: Slurm) -> None:
    """--container-unshare=net,ipc,uts gives all tasks of a step the same new namespaces; the loopback is up, and the name stays."""
    command = "sh -c 'echo $(stat -L -c %i /proc/self/ns/net /proc/self/ns/ipc /proc/self/ns/uts) $(hostname) $(stat -c %d /dev/shm)'"
    plain = srun(slurm, f"--container-image={IMAGE}", command).stdout.split()
    done = srun(slurm, f"-n2 --container-image={IMAGE} --container-unshare=net,ipc,uts", command)
    first, second = done.stdout.splitlines()
    assert first == second, done.stderr
    assert plain[3] == "one"
    assert set(first.split()) & set(plain) == {"one"}, (plain, first)
    script = 'bash -c "exec 3<>/dev/tcp/127.0.0.1/9"'
    mounts = "--container-mounts=/usr:/usr:ro"
    done = srun(slurm, f"--container-image={IMAGE} {mounts} --container-unshare=net", script)
    assert "Connection refused" in done.stderr
    done = srun(
        slurm,
        f"--container-image={IMAGE} --container-unshare=uts --container-remap-root",
        "sh -c 'hostname new; hostname'",
    )
    assert done.stdout == "new\n", done.stderr
    assert slurm.sh("hostname").stdout == "one\n"


def test_a_step_that_joins_a_container(slurm: Slurm) -> None:
    """A step that joins has the container's namespaces; a request for another namespace is refused, and ignored mounts are named."""
    stay = "until [ -e /go ]; do sleep 0.1; done"
    net = "stat -L -c %i /proc/self/ns/net"
    script = f"""
        export ENROOT_ALLOW_HTTP=y; n="srun -Q -n1 --overlap --container-name"
        $n=own --container-image={IMAGE} --container-unshare=net sh -c "{stay}" &
        $n=plain --container-image={IMAGE} sh -c "{stay}" &
        for each in own plain; do t=0; until $n=$each:exec true 2>/dev/null || [ $t -gt 50 ]; do t=$((t+1)); sleep 0.1; done; done
        $n=own {net}; $n=plain {net}
        $n=plain --container-unshare=net true; echo $?
        $n=plain --container-mounts=/srv:/srv true; echo $?
        $n=own touch /go; $n=plain touch /go; wait"""
    done = slurm.sh(f"salloc -Q -n2 sh -c '{script}'", user="alice", timeout=120)
    own, plain, refused, ignored = done.stdout.split()
    assert own != plain, done.stderr
    assert (refused, ignored) == ("1", "0"), done.stderr
    assert (
        "container: --container-unshare=net: the container runs already, and its network is not separate" in done.stderr
    )
    assert done.stderr.count("container: the container runs already, so --container-mounts is ignored") == 1, (
        done.stderr
    )


def test_a_nested_srun_starts_where_the_job_does(slurm: Slurm) -> None:
    """An srun in a batch script's container does not report an error about a folder that exists only in the container."""
    wrap = "--wrap 'pwd; srun -Q cat /etc/word; srun -Q --container-image=./image.tar cat /etc/word'"
    script = f"ENROOT_ALLOW_HTTP=y sbatch -Q -W -o out.nested --container-image={IMAGE} --container-mounts=/usr:/usr:ro {wrap}"
    srun(slurm, "--container-image=./image.tar", "true")
    assert slurm.sh(script, user="alice", timeout=60).returncode == 0
    assert slurm.read("/home/alice/out.nested") == "/work/here\nsecond\nsecond\n"


def test_accounts_of_a_container(slurm: Slurm) -> None:
    """sshd accepts the user's account without a shadow file, and the container resolves the node's name."""
    done = srun(slurm, f"--container-image={IMAGE}", "sh -c 'grep alice /etc/passwd; cat /etc/hostname'")
    assert done.stdout.startswith("alice:*:1000:1000:"), done.stdout
    assert done.stdout.endswith("\none\n"), done.stdout


def test_the_driver_is_added_where_it_is(slurm: Slurm) -> None:
    """LD_LIBRARY_PATH includes the driver's folder if that is not empty, and is the user's value if --container-env names it."""
    command = "sh -c 'echo l:$LD_LIBRARY_PATH'"
    folder = "/opt/soperator/driver/lib"
    slurm.sh(f"mkdir -p {folder}")
    try:
        assert srun(slurm, f"--container-image={IMAGE}", command).stdout == "l:\n"
        slurm.sh(f"touch {folder}/libcuda.so.1")
        assert srun(slurm, f"--container-image={IMAGE}", command).stdout == f"l:{folder}\n"
        named = f"ENROOT_ALLOW_HTTP=y LD_LIBRARY_PATH=/mine srun -Q --container-image={IMAGE} --container-env=LD_LIBRARY_PATH {command}"
        assert slurm.sh(named, user="alice").stdout == "l:/mine\n"
    finally:
        slurm.sh("rm -r /opt/soperator/driver")


def test_more_flags_of_mounts(slurm: Slurm) -> None:
    """The kernel checks all options of a tmpfs, and a mount can be unbindable."""
    mounts = "tmpfs:/t:size=1m+nr_inodes=9+huge=within_size,/home/alice:/h:unbindable"
    done = srun(
        slurm,
        f"--container-image={IMAGE} --container-mounts={mounts}",
        "sh -c 'stat -f -c %c /t; grep -c unbindable /proc/self/mountinfo'",
    )
    assert done.stdout == "9\n1\n", done.stderr


def test_bad_words_are_refused_before_there_is_a_job(slurm: Slurm) -> None:
    """srun itself reports an invalid option."""
    for options, sentence in {
        "--container-mounts=/a:/b": "container: --container-mounts has no effect without --container-image or --container-name",
        f"--container-image={IMAGE} --container-mounts=/a:/b:rw+odd": 'container: --container-mounts: unknown flag "odd" of /b',
        f"--container-image={IMAGE} --container-mounts=a:/b": 'container: --container-mounts: "a" is neither a path nor tmpfs nor umount',
        "--container-name=../x": "container: --container-name=../x: a name has 1 to 64 letters",
        "--container-name=x:often": "container: --container-name=x:often: the name may be followed by :auto",
        f"--container-image={IMAGE} --container-save=/a/": "container: --container-save=/a/ is a folder",
        f"--container-image={IMAGE} --container-unshare=net,pid": 'container: --container-unshare: unknown namespace "pid"',
        f"--container-image={IMAGE} --container-env=FOO,": "container: --container-env=FOO,: a name is empty",
        f"--container-image={IMAGE} --container-readonly --container-writable": "contradict each other",
        f"--container-image={IMAGE} --no-container-remap-root --container-remap-root": "contradict each other",
    }.items():
        done = srun(slurm, options, "true")
        assert done.returncode != 0
        assert sentence in done.stderr, (options, done.stderr)


def test_a_failed_import_is_one_sentence_and_harms_no_node(slurm: Slurm) -> None:
    """The job's stderr names the image and the reason once, all tasks exit with 1, and the node stays idle."""
    give(slurm, "/home/alice/broken", b"hsqs" + bytes(500))
    give(slurm, "/home/alice/strange", b"hello")
    for image, reason in {
        f"10.99.0.1:{PORT}#tests/small:none": f"container: cannot find the image docker://10.99.0.1:{PORT}/tests/small:none: ",
        "10.99.0.1:9#tests/small:one": "container: cannot find the image docker://10.99.0.1:9/tests/small:one: ",
        "./nowhere.sqsh": "container: cannot find the image ./nowhere.sqsh: No such file or directory",
        "./broken": "container: cannot unpack the image /home/alice/broken: ",
        "./strange": "container: /home/alice/strange is neither a squashfs file nor an archive of docker or OCI: ",
    }.items():
        done = srun(slurm, f"-n2 --container-image={image}", "echo ran")
        assert (done.stdout, done.returncode) == ("", 1), done.stderr
        assert done.stderr.count(reason) == 1, done.stderr
    slurm.sh("sbatch -W -o out.fail --container-image=./nowhere.sqsh --wrap 'echo ran'", user="alice")
    assert "container: cannot find the image ./nowhere.sqsh" in slurm.read("/home/alice/out.fail")
    assert wait_idle(slurm) == "idle none"


def test_credentials(slurm: Slurm, layout: Path) -> None:
    """A registry with a password accepts docker's credentials and enroot's; without them the user sees the refusal."""
    server = serve(slurm, layout, PORT + 1, "--login", "me:secret")
    image = f"10.99.0.1:{PORT + 1}#closed/one:one"
    try:
        done = srun(slurm, f"--container-image={image}", "true")
        assert done.returncode == 1
        assert "cannot find the image" in done.stderr
        assert any(word in done.stderr for word in ("authentication required", "unauthorized", "log in")), done.stderr
        slurm.sh("mkdir -p .docker", user="alice")
        slurm.sh(
            f"install -d -o 1000 {JAIL}/home/alice/.docker {JAIL}/home/alice/.config {JAIL}/home/alice/.config/enroot"
        )
        auths = f'{{"auths": {{"10.99.0.1:{PORT + 1}": {{"auth": "bWU6c2VjcmV0"}}}}}}'
        give(slurm, "/home/alice/.docker/config.json", auths.encode())
        done = srun(slurm, f"--container-image={image}", "cat /etc/word")
        assert done.stdout == "second\n", done.stderr
        slurm.sh(f"rm {JAIL}/home/alice/.docker/config.json")
        line = f"machine other login x password y\nmachine 10.99.0.1:{PORT + 1} login me password $WORD\n"
        give(slurm, "/home/alice/.config/enroot/.credentials", line.encode())
        script = f"export ENROOT_ALLOW_HTTP=y WORD=secret; srun -Q --container-image=me@{image} cat /etc/word"
        done = slurm.sh(script, user="alice")
        assert done.stdout == "second\n", done.stderr
        bare = f"--export=ENROOT_ALLOW_HTTP=y,WORD=secret --container-image=me@{image}"
        assert srun(slurm, bare, "cat /etc/word").stdout == "second\n"
    finally:
        server.kill()
        server.wait()


def test_a_certificate_of_ones_own(slurm: Slurm, layout: Path, tmp_path: Path) -> None:
    """TLS is the default; the helper trusts a registry's certificate if SSL_CERT_FILE has its authority."""
    words = [
        "-subj",
        "/CN=lab",
        "-addext",
        "subjectAltName=IP:10.99.0.1",
        "-days",
        "2",
        "-newkey",
        "rsa:2048",
        "-nodes",
        "-x509",
    ]
    files = ["-keyout", str(tmp_path / "key"), "-out", str(tmp_path / "certificate")]
    subprocess.run(["openssl", "req", *words, *files], check=True, capture_output=True)
    (tmp_path / "both").write_text((tmp_path / "key").read_text() + (tmp_path / "certificate").read_text())
    give(slurm, "/home/alice/authority", (tmp_path / "certificate").read_bytes())
    server = serve(slurm, layout, PORT + 3, "--certificate", str(tmp_path / "both"))
    step = f"srun -Q --container-image=10.99.0.1:{PORT + 3}#tests/small:one cat /etc/word"
    try:
        refused = slurm.sh(step, user="alice")
        assert "certificate signed by unknown authority" in refused.stderr
        done = slurm.sh(f"SSL_CERT_FILE=$HOME/authority {step}", user="alice")
        assert done.stdout == "second\n", done.stderr
    finally:
        server.kill()
        server.wait()


def test_a_cancelled_job_leaves_nothing(slurm: Slurm) -> None:
    """After scancel no process and no mount of the container remains in the pod, and the node is idle."""
    wrap = "--wrap 'touch /tmp/on; sleep 3333 & sleep 3333'"
    command = f"ENROOT_ALLOW_HTTP=y sbatch --parsable -o /dev/null --container-image={IMAGE} {wrap}"
    job = slurm.sh(command, user="alice").stdout.strip()
    slurm.until(f"[ -e /mnt/tmp/job-{job}/on ]")
    assert "container-keep" in slurm.sh("ps -eo comm").stdout
    slurm.sh(f"scancel {job}")
    assert wait_idle(slurm) == "idle none"
    left = slurm.sh("ps -eo args; cat /proc/self/mountinfo").stdout
    assert "sleep 3333" not in left
    assert "container-keep" not in left
    assert ".containers-" not in left


def test_a_job_cancelled_while_its_image_is_fetched_leaves_nothing(slurm: Slurm, layout: Path) -> None:
    """A registry that sends almost no data does not block a node: the job ends, and its partial download is removed."""
    server = serve(slurm, layout, PORT + 2, "--slow")
    image = f"10.99.0.1:{PORT + 2}#tests/small:one"
    try:
        command = (
            f"rm -rf ~/.cache; ENROOT_ALLOW_HTTP=y sbatch --parsable -o /dev/null --container-image={image} --wrap true"
        )
        job = slurm.sh(command, user="alice").stdout.strip()
        slurm.until("pgrep -x skopeo >/dev/null")
        slurm.sh(f"scancel {job}")
        assert wait_idle(slurm) == "idle none"
        assert "skopeo" not in slurm.sh("ps -eo args").stdout
        assert [each for each in slurm.sh("ls -A /mnt/tmp").stdout.split() if each.startswith("job-")] == []
        slurm.sh(f"rm -rf {JAIL}/home/alice/.cache/soperator")
        assert srun(slurm, f"--container-image={IMAGE}", "cat /etc/word").stdout == "second\n"
    finally:
        server.kill()
        server.wait()


def test_a_terminal_and_salloc(slurm: Slurm) -> None:
    """`srun --pty` has a terminal in the container, and salloc's shell runs in it as well."""
    done = slurm.sh(
        f"export ENROOT_ALLOW_HTTP=y; script -qc 'srun -Q --pty --container-image={IMAGE} sh -c \"ls -l /proc/self/fd/0; cat /etc/word\"' /dev/null",
        user="alice",
    )
    assert "/dev/pts/0" in done.stdout
    assert "second" in done.stdout
    done = slurm.sh(
        f"export ENROOT_ALLOW_HTTP=y; echo cat /etc/word | salloc -Q --container-image={IMAGE}", user="alice"
    )
    assert done.stdout == "second\n", done.stderr


def test_devices_of_the_job_are_those_of_its_container(slurm: Slurm) -> None:
    """/dev is the job's own: it has the GPU that Slurm allocated, and no other one."""
    assert "fakegpu" not in srun(slurm, f"--container-image={IMAGE}", "ls /dev").stdout
    with_gpu = srun(slurm, f"--gres=gpu:1 --container-image={IMAGE}", "ls /dev")
    assert with_gpu.stdout.count("fakegpu") == 1, with_gpu.stderr


def test_mpi_by_pmix(slurm: Slurm) -> None:
    """Tasks in a container have PMIx's environment, and its server's folder and sockets."""
    command = "sh -c 'echo $PMIX_RANK; test -d $PMIX_SERVER_TMPDIR && test -n \"$PMIX_SERVER_URI41$PMIX_SERVER_URI4$PMIX_SERVER_URI3\"'"
    done = srun(slurm, f"-n2 --mpi=pmix --container-image={IMAGE}", command)
    assert (sorted(done.stdout.split()), done.returncode) == (["0", "1"], 0), done.stderr


def test_others_cannot_reach_into_a_container(slurm: Slurm) -> None:
    """The user's folder has mode 0700, and a folder that another user created in its place is refused."""
    slurm.sh(f"useradd -R {JAIL} -m -u 1001 bob; useradd -m -u 1001 bob; install -d -o 1001 {JAIL}/mnt/tmp")
    done = srun(slurm, f"--container-image={IMAGE}", "stat -c %a /tmp/.containers-1000")
    assert done.stdout == "700\n", done.stderr


def test_what_users_leave_open_is_the_administrators_to_say(slurm: Slurm) -> None:
    """Arguments of the plugin set the defaults of options, and a container with a name may outlive its job."""
    arguments = "mount_home=1 remap_root=1 execute_entrypoint=1 container_scope=global storage=/srv/boxes"
    line = r"bind\t/mnt/tmp/boxes\t/srv/boxes\tnosuid,nodev\tkept"
    made = slurm.sh(
        f"cp /etc/slurm/plugstack.conf /plugstack.good && cp {PLAN} /plan.good && install -d -m 1777 /mnt/tmp/boxes {JAIL}/srv/boxes && "
        f"printf '{line}\\n' >>{PLAN} && sed -i '/spank_container/s#$# {arguments}#' /etc/slurm/plugstack.conf"
    )
    assert made.returncode == 0, made.stderr
    try:
        script = "sh -c 'id -u; echo $BY_ENTRYPOINT; cd; ls -d image.tar; echo word >/kept'"
        done = srun(slurm, f"--container-image={IMAGE} --container-name=lasting", script)
        assert done.stdout.split() == ["0", "yes", "image.tar"], done.stderr
        assert srun(slurm, "--container-name=lasting", "cat /kept").stdout == "word\n"
        slurm.sh(
            "sbatch -o /dev/null --container-name=lasting --wrap 'touch /tmp/on; until [ -e /tmp/go ]; do sleep 0.1; done'",
            user="alice",
        )
        slurm.until("ls /mnt/tmp/job-*/on")
        done = srun(slurm, "--container-name=lasting", "true")
        assert "container: this container runs in another job of yours" in done.stderr
        remove = "/opt/soperator/lib/slurm/container remove --storage=/srv/boxes lasting"
        done = srun(slurm, "", remove)
        assert (done.stdout, done.returncode) == ("", 1)
        assert "container: the container lasting runs; it can be removed when it has ended" in done.stderr
        slurm.sh("for job in /mnt/tmp/job-*; do touch $job/go; done")
        assert wait_idle(slurm) == "idle none"
        assert srun(slurm, "", remove).returncode == 0
        assert slurm.sh("ls /mnt/tmp/boxes/1000/named").stdout == ""
        assert "there is no container lasting here" in srun(slurm, "", remove).stderr
    finally:
        slurm.sh(f"cp /plugstack.good /etc/slurm/plugstack.conf; cp /plan.good {PLAN}")


def test_nobody_takes_the_folder_of_another_user(slurm: Slurm) -> None:
    """Root owns the folder for unpacked images, and the job creates each user's folder in it, so no other user can create it first."""
    line = r"bind\t/mnt/tmp/containers\t/run/soperator/containers\tnosuid,nodev\timages"
    made = slurm.sh(
        f"cp {PLAN} /plan.good && install -d -m 0755 /mnt/tmp/containers {JAIL}/run/soperator/containers && printf '{line}\\n' >>{PLAN}"
    )
    assert made.returncode == 0, made.stderr
    try:
        assert srun(slurm, "", "mkdir /run/soperator/containers/1001").returncode != 0
        done = srun(slurm, f"--container-image={IMAGE}", "cat /etc/word")
        assert done.stdout == "second\n", done.stderr
        where = "/mnt/tmp/containers/1000"
        assert slurm.sh(f"stat -c '%u %g %a' {where}; ls {where}").stdout == "1000 1000 700\ntrees\n"
        slurm.sh(f"rm -r {where}; install -d -o 1001 {where}")
        done = srun(slurm, f"--container-image={IMAGE}", "cat /etc/word")
        assert done.stdout == "second\n", "a folder of somebody else's is passed by"
    finally:
        slurm.sh(f"cp /plan.good {PLAN}; rm -r /mnt/tmp/containers")


#: A listener whose queue is full: who connects waits for ever. It belongs to a job beside the attacked one, whose end does not reach it.
FULL = """
import os, socket, time
at = "/home/alice/full"
if os.path.exists(at): os.unlink(at)
server = socket.socket(socket.AF_UNIX); server.bind(at); server.listen(0)
clients = [socket.socket(socket.AF_UNIX) for _ in range(3)]
for each in clients: each.setblocking(False); each.connect_ex(at)
open("/home/alice/is-full", "w").close()
time.sleep(120)
"""
#: A step whose container's socket is that one; its task hangs there too, and its user kills it.
HANGS = """#!/bin/sh
box=/tmp/.containers-1000/$SLURM_JOB_ID/x
mkdir -p -m 700 $box; chmod 700 /tmp/.containers-1000; ln -s /home/alice/full $box/socket
(sleep 2; for each in /proc/[0-9]*; do grep -qs slurmstepd $each/cmdline && kill -9 ${each#/proc/}; done) &
srun -Q --overlap -n1 --container-name=x true; touch ~/is-over; sleep 60
"""


def test_a_socket_that_does_not_answer_holds_no_slurmstepd(slurm: Slurm) -> None:
    """A file that a user puts in place of the container's socket delays slurmstepd for some seconds; the node stays in service."""
    give(slurm, "/home/alice/full.py", FULL.encode())
    give(slurm, "/home/alice/hangs.sh", HANGS.encode())
    slurm.sh("sbatch -Q -n1 --mem=10 --output=/dev/null --wrap 'exec python3 ~/full.py'", user="alice")
    slurm.until(f"test -e {JAIL}/home/alice/is-full")
    started = slurm.sh(f"sbatch --parsable -n1 --mem=10 --output=/dev/null {JAIL}/home/alice/hangs.sh", user="alice")
    slurm.until(f"test -e {JAIL}/home/alice/is-over")
    slurm.sh(f"scancel {started.stdout.strip()}")
    slurm.until(f"! squeue -h -o %i | grep -qx {started.stdout.strip()}")
    slurm.sh("scancel -u alice")
    assert wait_idle(slurm) == "idle none"
