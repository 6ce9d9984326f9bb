"""A GPU driver is listed from a folder or a CDI specification, and nothing else comes with it."""

import json
from pathlib import Path

import pytest
import yaml

from soperator.agents.driver import File, Refusal, of_cdi, of_folder, write

VERSION = "550.54.14"


def fill(root: Path, *names: str) -> Path:
    """Make files, programs where the folder is one of programs; a name with `->` is a link."""
    for name in names:
        path, _, target = name.partition(" -> ")
        file = root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        if target:
            file.symlink_to(target)
        else:
            file.write_text(path)
            file.chmod(0o755 if "bin" in file.parts[-2] else 0o644)
    return root


def names(files: list[File]) -> list[str]:
    """What the lines of a list are about."""
    return [f"{each.kind} {each.name}" for each in files]


class TestFolder:
    """A driver's folder."""

    def test_one_made_for_a_driver_is_taken_whole(self, tmp_path: Path) -> None:
        """Every library and every program, links by the file behind them."""
        root = fill(
            tmp_path, f"lib/libcuda.so.{VERSION}", f"lib/libcuda.so.1 -> libcuda.so.{VERSION}", "lib/libodd.so.2",
            "lib/notes.txt", "bin/nvidia-smi", "bin/tool",
        )  # fmt: skip
        found = of_folder(root, "it")
        assert names(found) == [
            "bin nvidia-smi", "bin tool", "lib libcuda.so.1", f"lib libcuda.so.{VERSION}", "lib libodd.so.2",
        ]  # fmt: skip
        assert found[2].path == f"{root}/lib/libcuda.so.{VERSION}"

    def test_of_a_whole_distribution_only_the_driver_is_taken(self, tmp_path: Path) -> None:
        """Where the C library lies beside, as in the root of a driver container, neither it nor other libraries come along."""
        root = fill(
            tmp_path, "usr/lib/x86_64-linux-gnu/libc.so.6", "usr/lib/x86_64-linux-gnu/libz.so.1", "usr/bin/bash",
            f"usr/lib/x86_64-linux-gnu/libnvidia-ml.so.{VERSION}", "usr/lib/x86_64-linux-gnu/libEGL_nvidia.so.0",
            "usr/lib/x86_64-linux-gnu/libnvrtc.so.12", "usr/bin/nvidia-smi", "lib -> usr/lib",
        )  # fmt: skip
        assert names(of_folder(root, "it")) == [
            "bin nvidia-smi", "lib libEGL_nvidia.so.0", f"lib libnvidia-ml.so.{VERSION}",
        ]  # fmt: skip

    def test_an_empty_one_is_refused_with_where_it_was_looked_for(self, tmp_path: Path) -> None:
        """The sentence names the folder as its author did."""
        with pytest.raises(
            Refusal, match=r"/opt/driver of the Node has no GPU driver: neither it nor lib, lib64, usr/lib64"
        ):
            of_folder(fill(tmp_path, "bin/nvidia-smi"), "/opt/driver of the Node")

    def test_a_link_out_of_it_is_refused(self, tmp_path: Path) -> None:
        """What the pod was not given cannot be bound."""
        fill(tmp_path, "elsewhere/libcuda.so.1")
        root = fill(tmp_path / "root", "lib/libcuda.so.1 -> ../../elsewhere/libcuda.so.1")
        with pytest.raises(Refusal, match=r"lib/libcuda.so.1 of the GPU driver links to"):
            of_folder(root, "it")


def specification(**more: object) -> dict[str, object]:
    """What nvidia-ctk writes, shortened."""
    common = {
        "mounts": [
            {"hostPath": f"/usr/lib/libcuda.so.{VERSION}", "containerPath": f"/usr/lib/libcuda.so.{VERSION}", "options": ["ro"]},
            {"hostPath": "/usr/bin/nvidia-smi", "containerPath": "/usr/bin/nvidia-smi"},
            {"hostPath": "/usr/lib/libc.so.6", "containerPath": "/usr/lib/libc.so.6"},
            {"hostPath": "/usr/lib/firmware/gsp.bin", "containerPath": "/usr/lib/firmware/gsp.bin"},
            {"hostPath": "/run/nvidia-persistenced/socket", "containerPath": "/run/nvidia-persistenced/socket"},
        ],
        "hooks": [
            {
                "hookName": "createContainer", "path": "/usr/bin/nvidia-cdi-hook",
                "args": ["nvidia-cdi-hook", "create-symlinks", "--link", "libcuda.so.1::/usr/lib/libcuda.so", "--link=a::/usr/bin/b"],
            },
            {"hookName": "createContainer", "path": "/x", "args": ["nvidia-cdi-hook", "update-ldcache", "--folder", "/usr/lib"]},
        ],
    }  # fmt: skip
    device = {"mounts": [{"hostPath": "/usr/lib/libextra.so.1", "containerPath": "/usr/lib/libextra.so.1"}]}
    devices = [{"name": "0", "containerEdits": device}, {"name": "all", "containerEdits": device}]
    return {"cdiVersion": "0.5.0", "kind": "nvidia.com/gpu", "containerEdits": common, "devices": devices, **more}


@pytest.fixture
def host(tmp_path: Path) -> Path:
    """The Node's /usr."""
    return fill(
        tmp_path / "usr",
        f"lib/libcuda.so.{VERSION}",
        "bin/nvidia-smi",
        "lib/libc.so.6",
        "lib/firmware/gsp.bin",
        "lib/libextra.so.1",
    )


class TestCdi:
    """A CDI specification."""

    @pytest.mark.parametrize("suffix", ["yaml", "json"])
    def test_libraries_programs_and_links_are_taken(self, tmp_path: Path, host: Path, suffix: str) -> None:
        """From the common edits and from those of devices, once each; the C library, firmware and sockets are not."""
        file = tmp_path / f"nvidia.{suffix}"
        file.write_text(json.dumps(specification()) if suffix == "json" else yaml.safe_dump(specification()))
        for spec in (file, tmp_path):
            assert [str(each) for each in of_cdi(spec, host, "/usr", "it")] == [
                f"bin\tnvidia-smi\t{host}/bin/nvidia-smi",
                f"lib\tlibcuda.so.{VERSION}\t{host}/lib/libcuda.so.{VERSION}",
                f"lib\tlibextra.so.1\t{host}/lib/libextra.so.1",
                "link\tlibcuda.so\tlibcuda.so.1",
            ]

    @pytest.mark.parametrize(
        ("text", "said"),
        [
            ("[", "cannot be read"),
            ("a: 1", "is not a CDI specification"),
            (json.dumps(specification(devices=[])), "lists no device: generate it again"),
            (json.dumps(specification()).replace("libcuda.so.550", "libcuda.so.560"), "the Node does not have: generate the specification again"),
        ],
    )  # fmt: skip
    def test_what_cannot_be_right_is_told_in_a_sentence(self, tmp_path: Path, host: Path, text: str, said: str) -> None:
        """It begins with the specification as its author named it."""
        file = tmp_path / "nvidia.yaml"
        file.write_text(text)
        with pytest.raises(Refusal, match=f"^/etc/cdi .*{said}"):
            of_cdi(file, host, "/usr", "/etc/cdi")

    def test_another_root_is_asked_for_where_nothing_lies_below_this_one(self, tmp_path: Path, host: Path) -> None:
        """Driver containers have their files elsewhere."""
        file = tmp_path / "nvidia.json"
        file.write_text(json.dumps(specification()))
        with pytest.raises(Refusal, match=r"lists no library below /run/nvidia/driver: set gpu.driver.cdi.root"):
            of_cdi(file, host, "/run/nvidia/driver", "it")


def test_the_list_is_a_line_for_each_file(tmp_path: Path) -> None:
    """Three fields, as the entry script reads them."""
    write([File("lib", "a.so", "/x/a.so"), File("link", "b.so", "a.so")], tmp_path / "files")
    assert (tmp_path / "files").read_text() == "lib\ta.so\t/x/a.so\nlink\tb.so\ta.so\n"
