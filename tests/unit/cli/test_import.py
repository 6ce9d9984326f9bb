"""`soperator import` reads files, prints objects, and ends with one line where it cannot read."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

from soperator.cli.__main__ import app
from soperator.cli.importing import read_objects
from soperator.cli.support.manifests import YamlLoader

RUN = CliRunner()


def run(system: str, *files: Path, report: Path | None = None) -> tuple[int, str, list[str]]:
    """The exit code, standard output, and the lines of standard error."""
    words = [word for file in files for word in ("-f", str(file))]
    done = RUN.invoke(app, ["import", "--from", system, *words, *(["--report", str(report)] if report else [])])
    return done.exit_code, done.stdout, done.stderr.splitlines()


class TestSlurm:
    """Files of Slurm's configuration folder."""

    def test_finds_the_files_that_slurm_conf_names(self, tmp_path):
        """Includes, scripts and gres.conf, from the folder or from slurm.conf."""
        (tmp_path / "slurm.conf").write_text("ClusterName=a\nInclude nodes.conf\nEpilog=/etc/slurm/epilog.d/*.sh\n")
        (tmp_path / "nodes.conf").write_text("NodeName=n[1-2] CPUs=2 RealMemory=1000 Gres=gpu:2\n")
        (tmp_path / "gres.conf").write_text("AutoDetect=rsmi\n")
        (tmp_path / "epilog.d").mkdir()
        (tmp_path / "epilog.d/a.sh").write_text("#!/bin/sh\ntrue\n")
        for given in (tmp_path, tmp_path / "slurm.conf"):
            code, out, _ = run("slurm", given)
            cluster, nodes = yaml.safe_load_all(out)
            assert code == 0
            assert cluster["spec"]["config"]["epilog"] == [{"name": "a.sh", "text": "#!/bin/sh\ntrue\n"}]
            assert nodes["spec"]["gpu"] == {"vendor": "amd", "count": 2}

    def test_exits_with_3_where_something_was_left_out(self, tmp_path):
        """And prints the objects all the same."""
        (tmp_path / "slurm.conf").write_text("ClusterName=a\nRebootProgram=/sbin/reboot\n")
        code, out, err = run("slurm", tmp_path)
        assert (code, yaml.safe_load(out)["metadata"]["name"]) == (3, "a")
        assert (
            "left     slurm.conf, line 2: RebootProgram=/sbin/reboot: a pod does not reboot its machine"
            in "\n".join(err)
        )
        assert err[-1] == "1 carried, 0 ours, 2 check, 1 left"

    def test_a_report_in_a_file_has_what_was_carried_too(self, tmp_path):
        """Standard error has the numbers only."""
        (tmp_path / "slurm.conf").write_text("ClusterName=a\n")
        _, _, err = run("slurm", tmp_path, report=tmp_path / "report")
        assert (
            (tmp_path / "report")
            .read_text()
            .startswith("carried  slurm.conf, line 1: ClusterName=a: now metadata.name")
        )
        assert err == ["1 carried, 0 ours, 2 check, 0 left"]

    def test_what_lint_refuses_is_in_the_report(self, tmp_path):
        """A partition's name may be so long that Slurm takes it and the API does not."""
        (tmp_path / "slurm.conf").write_text("NodeName=a Gres=gpu:65\n")
        code, _, err = run("slurm", tmp_path)
        assert code == 3
        assert "left     NodeSet a: spec.gpu.count: 65: it should be less than or equal to 64" in err

    def test_a_setting_cannot_write_to_the_terminal(self, tmp_path):
        """Control characters become their numbers."""
        (tmp_path / "slurm.conf").write_text("Nonsense=\x1b]0;x\x07\n")
        assert "\x1b" not in "".join(run("slurm", tmp_path)[2])

    @pytest.mark.parametrize(
        ("make", "message"),
        [
            (lambda folder: [folder / "slurm.conf"], "slurm.conf: it cannot be read: No such file or directory"),
            (lambda folder: [folder], "slurm.conf: it cannot be read: No such file or directory"),
            (
                lambda folder: [folder / "a", folder / "b"],
                "none of the files is slurm.conf: give it, or the folder that contains it",
            ),
        ],
    )
    def test_a_file_that_is_not_there_is_one_line(self, tmp_path, make, message):
        """And nothing is printed."""
        code, out, err = run("slurm", *make(tmp_path))
        assert (code, out, len(err)) == (1, "", 1)
        assert err[0].endswith(message)

    def test_a_missing_include_is_one_line(self, tmp_path):
        """With the place where it was looked for."""
        (tmp_path / "slurm.conf").write_text("ClusterName=a\nInclude b.conf\n")
        code, out, err = run("slurm", tmp_path)
        assert (code, out) == (1, "")
        assert err == [
            f"slurm.conf, line 2: Include b.conf: the file does not exist: looked for {tmp_path}/b.conf; copy it there, or remove the line"
        ]

    def test_a_script_that_is_a_program_is_left_out(self, tmp_path):
        """It is no text, so that it cannot be in a spec."""
        (tmp_path / "slurm.conf").write_text("Prolog=/etc/slurm/prolog\n")
        (tmp_path / "prolog").write_bytes(b"\x7fELF\x00\xff\xfe")
        code, _, err = run("slurm", tmp_path)
        assert code == 3
        assert "it does not begin with the line of an interpreter" in "\n".join(err)

    def test_a_report_that_cannot_be_written_is_one_line(self, tmp_path):
        """Before anything is printed."""
        (tmp_path / "slurm.conf").write_text("ClusterName=a\n")
        code, out, err = run("slurm", tmp_path, report=tmp_path / "no/report")
        assert (code, out) == (1, "")
        assert err == [f"--report: {tmp_path}/no/report: it cannot be written: No such file or directory"]


class TestPlanted:
    """A folder or a file that somebody else has made for the person who imports it."""

    @pytest.mark.parametrize(
        ("make", "message"),
        [
            (lambda path: path.symlink_to("/dev/zero"), "it is no file: give the folder that contains slurm.conf"),
            (os.mkfifo, "it is no file: give the folder that contains slurm.conf"),
            (lambda path: path.write_text("Include /proc/self/pagemap\n"), "it has more than 4 MiB"),
        ],
        ids=["device", "pipe", "file without a size"],
    )
    def test_what_never_ends_is_not_read(self, tmp_path, make, message):
        """In a process of its own with little memory, which the system ends if it does not end."""
        make(tmp_path / "slurm.conf")
        words = [sys.executable, "-m", "soperator.cli", "import", "--from", "slurm", "-f", str(tmp_path)]
        limits = ["prlimit", f"--as={2 << 30}"]
        done = subprocess.run([*limits, *words], capture_output=True, text=True, timeout=20, check=False)
        assert done.returncode == 1
        assert message in done.stderr

    def test_all_files_together_have_a_limit(self, tmp_path):
        """An Include may name a folder of programs or logs."""
        for number in range(9):
            (tmp_path / f"{number}.txt").write_bytes(b"#" * (4 << 20))
        (tmp_path / "slurm.conf").write_text("Include *.txt\n")
        code, out, err = run("slurm", tmp_path)
        assert (code, out) == (1, "")
        assert (
            "7.txt: the files that slurm.conf names have more than 32 MiB: remove the Include that names it" in err[0]
        )

    @pytest.mark.parametrize(
        ("count", "times", "message"),
        [
            (24, 2, "it is include number 1001: remove some of them"),
            (300, 1, "slurm.conf: its includes are more than 32 levels deep: join some of the files"),
        ],
        ids=["each twice", "a chain"],
    )
    def test_includes_of_includes_have_a_limit(self, tmp_path, count, times, message):
        """Two lines in each of 24 files are 16 million includes."""
        for number in range(count):
            (tmp_path / f"{number}.conf").write_text(f"Include {number + 1}.conf\n" * times)
        (tmp_path / f"{count}.conf").write_text("MaxJobCount=5\n")
        (tmp_path / "slurm.conf").write_text("ClusterName=a\nInclude 0.conf\n")
        code, out, err = run("slurm", tmp_path)
        assert (code, out, len(err)) == (1, "", 1)
        assert message in err[0]

    def test_includes_of_includes_are_read(self, tmp_path):
        """As many levels as people write."""
        for number in range(20):
            (tmp_path / f"{number}.conf").write_text(f"Include {number + 1}.conf\n")
        (tmp_path / "20.conf").write_text("MaxJobCount=5\n")
        (tmp_path / "slurm.conf").write_text("ClusterName=a\nInclude 0.conf\n")
        assert "MaxJobCount=5" in run("slurm", tmp_path)[1]

    def test_a_pattern_is_one_folder(self, tmp_path):
        """As in glob(7); otherwise an Include walks through the whole file system."""
        (tmp_path / "inner").mkdir()
        (tmp_path / "inner/a.conf").write_text("Inside=1\n")
        (tmp_path / "a.conf").write_text("Beside=1\n")
        (tmp_path / "slurm.conf").write_text("ClusterName=a\nInclude **.conf\n")
        _, _, err = run("slurm", tmp_path)
        assert "Beside=1" in "".join(err)
        assert "Inside=1" not in "".join(err)

    def test_a_device_is_not_read_as_objects(self, tmp_path, monkeypatch):
        """Nor a file of any size."""
        monkeypatch.setattr(read_objects, "_LARGEST", 1000)
        (tmp_path / "a.yaml").symlink_to("/dev/zero")
        code, _, err = run("nebius", tmp_path / "a.yaml")
        assert code == 1
        assert "it has more than 0 MiB: give the objects alone" in err[0]

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            (
                "a: &a [x]\n"
                + "".join(f"{n}: &{n} [{', '.join([f'*{n - 1 or chr(97)}'] * 10)}]\n" for n in range(1, 9)),
                "repeat",
            ),
            ("spec: " + "[" * 3000 + "]" * 3000, "line 1: it is more than 100 levels deep"),
            ("spec: &s\n  inner: *s\n", "line 1: it contains itself"),
            ("spec:\n  ? [a, b]\n  : c\n", "line 2: a map or a list is no key"),
            (f"spec: {'9' * 5000}\n", "line 1: a value cannot be read: "),
            ("spec: !!timestamp 9999-99-99\n", "line 1: a value cannot be read: "),
        ],
        ids=["bomb", "deep", "circle", "key", "number", "date"],
    )
    def test_yaml_that_no_program_could_use_is_one_sentence(self, tmp_path, text, message):
        """For an import, and for lint."""
        (tmp_path / "a.yaml").write_text(text)
        code, out, err = run("nebius", tmp_path / "a.yaml")
        assert (code, out, len(err)) == (1, "", 1)
        assert message in err[0]
        done = RUN.invoke(app, ["lint", str(tmp_path / "a.yaml")])
        assert message in done.output

    def test_aliases_are_read(self, tmp_path):
        """As people write them."""
        (tmp_path / "a.yaml").write_text("a: &a {x: 1}\nb: *a\nc: {<<: *a, y: 2}\n")
        with (tmp_path / "a.yaml").open() as file:
            assert yaml.load(file, YamlLoader) == {"a": {"x": 1}, "b": {"x": 1}, "c": {"x": 1, "y": 2}}
