"""`soperator import` reads files, prints objects, and ends with one line where it cannot read."""

from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

from soperator.cli.__main__ import app

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
