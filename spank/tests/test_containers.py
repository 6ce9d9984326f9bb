"""Containers in a real Slurm 24.11: srun, sbatch and salloc with the options of Pyxis, as an ordinary user in the jail.

Needs skopeo, umoci and squashfs-tools in the root of test_slurm.py as well. The image has two layers and comes from a registry that these
tests run (oci.py).
"""

import json
import os
import subprocess
import sys
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

pytestmark = [
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root"),
    pytest.mark.skipif(
        not all((TRIXIE / name).exists() for name in NEEDED),
        reason=f"no Slurm, skopeo, umoci or squashfs-tools in {TRIXIE}",
    ),
]


@pytest.fixture(scope="module")
def built(plugin: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the other tests have built, with this plugin and its helper."""
    folder = tmp_path_factory.mktemp("containers")
    script = (
        'mount --bind "$1" "$3/mnt" && mount --bind "$2" "$3/srv" && chroot "$3" make -s -C /mnt/container BUILD=/srv'
    )
    subprocess.run(["unshare", "-m", "sh", "-c", script, "sh", str(SPANK), str(folder), str(TRIXIE)], check=True)
    subprocess.run(["cp", "-a", *map(str, plugin.iterdir()), str(folder)], check=True)
    return folder


@pytest.fixture(scope="module")
def layout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An image of a few programs of the trixie root."""
    folder = tmp_path_factory.mktemp("image") / "layout"
    programs = [f"/usr/bin/{name}" for name in PROGRAMS]
    make = [sys.executable, str(HERE / "oci.py"), "make", str(folder), "--root", str(TRIXIE), *programs]
    subprocess.run(make, check=True, capture_output=True)
    return folder


@pytest.fixture(scope="module", params=KINDS)
def slurm(
    built: Path, layout: Path, request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Slurm]:
    """Slurm in a pod (`make test-all`: in both kinds), the image as an archive in alice's home, and the registry."""
    kind = PODS[request.param]
    work = tmp_path_factory.mktemp("slurm")
    up = [str(HERE / "slurm/up"), str(TRIXIE), str(work), str(built)]
    with (work / "up.log").open("w") as log:
        pod = subprocess.Popen([*kind.words(), "--net", "--", *up], stdout=log, stderr=log)
    server = None
    try:
        slurm = wait_until_ready(pod, kind.userns, work / "up.log")
        server = serve(slurm, layout, PORT)
        archive = subprocess.run(["tar", "-C", str(layout), "-c", "."], check=True, capture_output=True).stdout
        give(slurm, "/home/alice/image.tar", archive)
        yield slurm
    finally:
        if server is not None:
            server.kill()
            server.wait()
        pod.kill()
        pod.wait()


def serve(slurm: Slurm, layout: Path, port: int, *more: str) -> "subprocess.Popen[bytes]":
    """A registry in the pod's network; it writes its log beside the layout."""
    words = [sys.executable, str(HERE / "oci.py"), "serve", str(layout), str(port), *more]
    with (layout / f"log-{port}").open("w") as log:
        server = subprocess.Popen(["nsenter", "-t", str(slurm.pid), "-n", *words], stdout=log, stderr=log)
    slurm.until(f"bash -c ': </dev/tcp/10.99.0.1/{port}' 2>/dev/null")
    return server


def give(slurm: Slurm, path: str, content: bytes) -> None:
    """Write a file of alice's in the jail."""
    user_namespace = ["-U", "--preserve-credentials"] if slurm.userns else []
    inside = ["nsenter", "-t", str(slurm.pid), "-m", "-p", *user_namespace]
    script = f"cat >{JAIL}{path}; chown 1000:1000 {JAIL}{path}"
    subprocess.run([*inside, "sh", "-c", script], input=content, check=True)


def srun(slurm: Slurm, options: str, command: str, timeout: float = 60) -> Any:
    """An srun of alice's."""
    return slurm.sh(f"ENROOT_ALLOW_HTTP=y srun -Q {options} {command}", user="alice", timeout=timeout)


def test_an_image_of_a_registry(slurm: Slurm) -> None:
    """A step runs in the image: its files, its working folder, its user, its environment."""
    command = "sh -c 'pwd; cat /etc/word; ls /etc/gone; id -un; echo $FROM_IMAGE; ls -d /in-the-*'"
    done = srun(slurm, f"--container-image={IMAGE}", command)
    assert done.stdout.split() == ["/work/here", "second", "alice", "image"], done.stderr


def test_forms_of_an_image(slurm: Slurm, layout: Path) -> None:
    """docker's form, docker://, a digest, an archive and a squashfs file that a container was saved to are the same image."""
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
    """Eight tasks ask the registry for the tag once, and for no blob that is in the user's cache."""
    log = layout / f"log-{PORT}"
    srun(slurm, f"--container-image={IMAGE}", "true")
    before = log.read_text().splitlines()
    done = srun(slurm, f"-n4 --container-image={IMAGE}", "cat /etc/word")
    assert done.stdout == "second\n" * 4
    asked = log.read_text().splitlines()[len(before) :]
    assert [line for line in asked if "/blobs/" in line and "GET" in line] in ([], asked[-1:]), asked
    assert len([line for line in asked if "/manifests/one" in line]) == 1, asked


def test_tasks_of_a_step_share_a_container(slurm: Slurm) -> None:
    """What one task writes, the other reads; the next step begins anew, and the jail and the image have nothing of it."""
    script = (
        "sh -c 'test $SLURM_PROCID = 0 && echo word >/shared; n=0; until cat /shared 2>/dev/null; do sleep 0.05; n=$((n+1)); "
        "test $n -lt 100 || exit 1; done'"
    )
    assert srun(slurm, f"-n2 --container-image={IMAGE}", script).stdout == "word\nword\n"
    assert srun(slurm, f"--container-image={IMAGE}", "cat /shared").returncode != 0
    assert slurm.sh(f"ls {JAIL}/shared").returncode != 0


def test_the_last_of_many_tasks_finds_the_first_ones_container(slurm: Slurm) -> None:
    """A task that ends at once does not take the container away from one that comes late."""
    script = "sh -c 'test $SLURM_PROCID != 0 || echo word >/shared'"
    for _ in range(3):
        done = srun(slurm, f"-n4 --container-image={IMAGE} --container-save=all.sqsh", script)
        assert done.returncode == 0, done.stderr
        assert srun(slurm, "--container-image=./all.sqsh", "cat /shared").stdout == "word\n"


def test_mounts(slurm: Slurm) -> None:
    """Folders and files of the jail, read-only or not, a tmpfs with a size, a path at itself; a mount can be taken away."""
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
    """Without the option $HOME is an empty folder of the container's; with it, it is the user's."""
    give(slurm, "/home/alice/file", b"content\n")
    command = "sh -c 'cd; pwd; ls; touch x'"
    assert srun(slurm, f"--container-image={IMAGE}", command).stdout == "/home/alice\n"
    assert "file" in srun(slurm, f"--container-image={IMAGE} --container-mount-home", command).stdout.split()
    assert srun(slurm, f"--container-image={IMAGE} --no-container-mount-home", command).stdout == "/home/alice\n"


def test_root_in_name(slurm: Slurm) -> None:
    """With remap-root the user is 0 inside, may change owners in name, and writes files of his own outside."""
    command = "sh -c 'id -u; touch /root-file /home/alice/by-root && stat -c %u /root-file; cat /etc/closed'"
    done = srun(slurm, f"--container-image={IMAGE} --container-remap-root --container-mount-home", command)
    assert done.stdout.split() == ["0", "0", "closed"], done.stderr
    assert slurm.sh(f"stat -c %u {JAIL}/home/alice/by-root").stdout == "1000\n"
    assert srun(slurm, f"--container-image={IMAGE} --no-container-remap-root", "id -u").stdout == "1000\n"


def test_the_working_folder(slurm: Slurm) -> None:
    """--container-workdir goes before the image's; one that is not there is said."""
    assert srun(slurm, f"--container-image={IMAGE} --container-workdir=/etc", "sh -c pwd").stdout == "/etc\n"
    done = srun(slurm, f"--container-image={IMAGE} --container-workdir=/nowhere", "sh -c pwd")
    assert (
        "container: cannot go to the working folder /nowhere in the container: No such file or directory" in done.stderr
    )
    assert (done.stdout, done.returncode) == ("", 1)


def test_the_environment(slurm: Slurm) -> None:
    """The image's variables win over the user's, but for those that are named; all others pass."""
    command = "sh -c 'echo $FROM_IMAGE $SHARED $OTHER $SLURM_PROCID'"
    script = f"export ENROOT_ALLOW_HTTP=y SHARED=mine OTHER=other; srun -Q --container-image={IMAGE}"
    assert slurm.sh(f"{script} {command}", user="alice").stdout == "image image other 0\n"
    assert slurm.sh(f"{script} --container-env=SHARED {command}", user="alice").stdout == "image mine other 0\n"


def test_the_entry_point(slurm: Slurm) -> None:
    """It runs only where asked, once for all tasks; what it exports is there for them, and what it says is shown where asked."""
    command = "sh -c 'echo by:$BY_ENTRYPOINT'"
    assert srun(slurm, f"--container-image={IMAGE}", command).stdout == "by:\n"
    done = srun(slurm, f"-n2 --container-image={IMAGE} --container-entrypoint --container-entrypoint-log", command)
    assert done.stdout == "by:yes\n" * 2
    assert done.stderr.count("the entry point runs") == 1
    assert "entry point" not in srun(slurm, f"--container-image={IMAGE} --container-entrypoint", command).stderr


def test_a_read_only_container(slurm: Slurm) -> None:
    """--container-readonly keeps the container's own files as they are, and the jail's /tmp writable."""
    done = srun(slurm, f"--container-image={IMAGE} --container-readonly", "sh -c 'touch /x; touch /tmp/x && echo can'")
    assert done.stdout == "can\n"
    assert "Read-only file system" in done.stderr
    assert srun(slurm, f"--container-image={IMAGE} --container-writable", "touch /x").returncode == 0


def test_a_container_with_a_name_lasts_as_long_as_its_job(slurm: Slurm) -> None:
    """A later step goes on in what an earlier one left, without an image; a step beside it joins it; the next job has nothing."""
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
    """With sbatch the script itself is inside; srun works from there, in a container of the same image or of one of its own."""
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
    """PYXIS_CONTAINER_… say what options would, and an option goes before its variable."""
    script = f"export ENROOT_ALLOW_HTTP=y PYXIS_CONTAINER_IMAGE={IMAGE} PYXIS_CONTAINER_REMAP_ROOT=1"
    assert slurm.sh(f"{script}; srun -Q sh -c 'id -u; cat /etc/word'", user="alice").stdout == "0\nsecond\n"
    assert slurm.sh(f"{script}; srun -Q --no-container-remap-root id -u", user="alice").stdout == "1000\n"


def test_bad_words_are_refused_before_there_is_a_job(slurm: Slurm) -> None:
    """srun itself says what is wrong with an option."""
    for options, sentence in {
        "--container-mounts=/a:/b": "container: --container-mounts means nothing without --container-image or --container-name",
        f"--container-image={IMAGE} --container-mounts=/a:/b:rw+odd": 'container: --container-mounts: unknown flag "odd" of /b',
        f"--container-image={IMAGE} --container-mounts=a:/b": 'container: --container-mounts: "a" is neither a path nor tmpfs nor umount',
        "--container-name=../x": "container: --container-name=../x: a name has 1 to 64 letters",
        "--container-name=x:often": "container: --container-name=x:often: behind the name may stand :auto",
        f"--container-image={IMAGE} --container-save=/a/": "container: --container-save=/a/ is a folder",
    }.items():
        done = srun(slurm, options, "true")
        assert done.returncode != 0
        assert sentence in done.stderr, (options, done.stderr)


def test_a_failed_import_is_one_sentence_and_harms_no_node(slurm: Slurm) -> None:
    """The job's stderr names the image and the reason once, all tasks end with 1, and the node stays idle."""
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
    """A registry with a password takes docker's credentials and enroot's, and without them the refusal is told."""
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
    finally:
        server.kill()
        server.wait()


def test_a_certificate_of_ones_own(slurm: Slurm, layout: Path, tmp_path: Path) -> None:
    """TLS is asked for where nothing else is said; a registry's certificate is believed when SSL_CERT_FILE has its authority."""
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
    """After scancel no process and no mount of the container is left in the pod, and the node is idle."""
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
    """A registry that is slow to the point of standing still holds no node: the job ends, and with it what was fetched."""
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
    """`srun --pty` has a terminal in the container, and salloc's shell is in it as well."""
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
    """/dev is the job's own: the GPU that it was given is there, and no other one."""
    assert "fakegpu" not in srun(slurm, f"--container-image={IMAGE}", "ls /dev").stdout
    with_gpu = srun(slurm, f"--gres=gpu:1 --container-image={IMAGE}", "ls /dev")
    assert with_gpu.stdout.count("fakegpu") == 1, with_gpu.stderr


def test_mpi_by_pmix(slurm: Slurm) -> None:
    """Tasks in a container have PMIx's environment, and its server's folder and sockets are there."""
    command = "sh -c 'echo $PMIX_RANK; test -d $PMIX_SERVER_TMPDIR && test -n \"$PMIX_SERVER_URI41$PMIX_SERVER_URI4$PMIX_SERVER_URI3\"'"
    done = srun(slurm, f"-n2 --mpi=pmix --container-image={IMAGE}", command)
    assert (sorted(done.stdout.split()), done.returncode) == (["0", "1"], 0), done.stderr


def test_others_cannot_reach_into_a_container(slurm: Slurm) -> None:
    """Its folder is shut, and a folder that somebody else made in its place is refused."""
    slurm.sh(f"useradd -R {JAIL} -m -u 1001 bob; useradd -m -u 1001 bob; install -d -o 1001 {JAIL}/mnt/tmp")
    done = srun(slurm, f"--container-image={IMAGE}", "stat -c %a /tmp/.containers-1000")
    assert done.stdout == "700\n", done.stderr


def test_what_users_leave_open_is_the_administrators_to_say(slurm: Slurm) -> None:
    """Arguments of the plugin say what happens without an option, and a container with a name may outlive its job."""
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
    finally:
        slurm.sh(f"cp /plugstack.good /etc/slurm/plugstack.conf; cp /plan.good {PLAN}")
