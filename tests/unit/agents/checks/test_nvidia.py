import json

import pytest

from soperator.agents.checks.probes import amd, nvidia
from soperator.agents.checks.probes.place import ProbeError, ProbePaths
from soperator.checks import catalog
from soperator.checks.evaluate import judge
from tests.unit.agents.checks.smi import SENTENCES, gpu, log

LIMITS = {machine: {name: each.value for name, each in found.items()} for machine, found in catalog.machines().items()}
CHECKS = {each.name: each for each in catalog.shipped()}


class Tools:
    """A folder with an nvidia-smi that plays a recorded answer, and device files."""

    def __init__(self, folder):
        self.folder = folder
        (folder / "dev").mkdir()
        self.place = ProbePaths(dev=folder / "dev", tools=(folder,))

    def play(self, out, err="", code=0, devices=8):
        self.set(out, err, code, devices)
        return nvidia.nvidia({"count": 8}, self.place)

    def set(self, out, err="", code=0, devices=0):
        (self.folder / "out").write_text(out)
        (self.folder / "err").write_text(err)
        script = self.folder / "nvidia-smi"
        script.write_text(f"#!/bin/sh\ncat {self.folder}/out\ncat {self.folder}/err >&2\nexit {code}\n")
        script.chmod(0o755)
        for number in range(devices):
            (self.folder / "dev" / f"nvidia{number}").touch()


@pytest.fixture
def tools(tmp_path):
    return Tools(tmp_path)


def failures(readings, probe="nvidia"):
    """The sentences of all shipped checks that fail these readings."""
    found = {name: judge(each, readings, LIMITS) for name, each in CHECKS.items() if each.probe == probe}
    assert not [each for each in found.values() if each.outcome == "broken"]
    return {name: each.message for name, each in found.items() if each.outcome == "fail"}


def test_eight_healthy_gpus_fail_nothing(tools):
    """Errors of former days (aggregate) are no failure, and neither is being busy."""
    assert failures(tools.play(log(*map(gpu, range(8))))) == {}


def test_a_gpu_without_ecc_nvswitch_or_newer_elements_fails_nothing(tools):
    """What is N/A, or what an older driver does not write, is not judged."""
    old = {
        "gpu_recovery_action": None,
        "remapped_rows/remapped_row_pending": "N/A",
        "fabric/state": "N/A",
        "fabric/status": "N/A",
    }
    readings = tools.play(log(*(gpu(n, **old, **{"ecc_errors/volatile/dram_uncorrectable": "N/A"}) for n in range(8))))
    assert failures(readings) == {}


@pytest.mark.parametrize(
    ("changed", "check", "said"),
    [
        ({"ecc_errors/volatile/dram_uncorrectable": 2}, "gpu-memory", "GPU 00000000:1C:00.0 has had 2 uncorrectable"),
        ({"ecc_errors/volatile/sram_uncorrectable_parity": 1}, "gpu-memory", "1 uncorrectable memory errors"),
        ({"remapped_rows/remapped_row_pending": "Yes"}, "gpu-memory", "waits for a reset"),
        (
            {"retired_pages/pending_retirement": "Yes", "remapped_rows/remapped_row_pending": None},
            "gpu-memory",
            "waits",
        ),
        ({"remapped_rows/remapped_row_failure": "Yes"}, "gpu-memory", "has to be replaced"),
        ({"gpu_recovery_action": "Drain and Reset"}, "gpu-recovery", "Drain and Reset"),
        ({"pci/pci_gpu_link_info/link_widths/current_link_width": "8x"}, "gpu-pcie", "8 PCIe lanes instead of 16"),
        ({"clocks/sm_clock": "345 MHz"}, "gpu-slow", "runs at 345 MHz, 17 % of what it can"),
        ({"clocks_event_reasons/clocks_event_reason_hw_thermal_slowdown": "Active"}, "gpu-slow", "for its heat: 61 °C"),
        ({"clocks_event_reasons/clocks_event_reason_hw_power_brake_slowdown": "Active"}, "gpu-slow", "power brake"),
        ({"fabric/state": "In Progress", "fabric/status": "N/A"}, "gpu-fabric", "waits to become part"),
        ({"fabric/status": "Failure"}, "gpu-fabric", "not part of the NVLink fabric: Failure"),
        ({"temperature/gpu_temp": "GPU is lost"}, "gpu-lost", "GPU 00000000:1C:00.0 is lost: GPU is lost"),
        ({"temperature/gpu_temp": "Unknown Error"}, "gpu-lost", "is lost: Unknown Error"),
    ],
)
def test_one_bad_gpu_among_eight_is_found_by_its_address(tools, changed, check, said):
    """The check that it concerns fails, and says which GPU and what is wrong."""
    found = failures(tools.play(log(*(gpu(n, **(changed if n == 3 else {})) for n in range(8)))))
    assert said in found[check]
    assert set(found) <= {check, "gpu-count"}


def test_an_idle_gpu_with_low_clocks_is_not_slow(tools):
    """Clocks count only while there is work."""
    idle = {"clocks/sm_clock": "345 MHz", "utilization/gpu_util": "0 %"}
    assert failures(tools.play(log(*(gpu(n, **idle) for n in range(8))))) == {}


def test_a_gpu_that_is_not_there_is_missing(tools):
    """Seven answer where the NodeSet promises eight."""
    assert failures(tools.play(log(*(gpu(n) for n in range(8) if n != 5)), devices=7)) == {
        "gpu-count": "1 of 8 GPUs do not answer"
    }


def test_gpus_in_another_order_than_their_device_files_are_told(tools):
    """Slurm counts device files, CUDA counts addresses on the bus."""
    gpus = [gpu(n, minor_number=7 - n) for n in range(8)]
    assert "another order" in failures(tools.play(log(*gpus)))["gpu-count"]


@pytest.mark.parametrize("channel", ["out", "err"])
@pytest.mark.parametrize("sentence", SENTENCES)
def test_a_sentence_instead_of_an_answer_is_a_lost_gpu(tools, sentence, channel):
    """XID 79, fallen off the bus, no driver: whichever channel and exit code it comes with."""
    found = failures(tools.play(*((sentence, "") if channel == "out" else ("", sentence)), code=255))
    assert sentence.split(":")[0].split("(")[0].strip()[:20] in found["gpu-lost"]
    assert found["gpu-count"] == "8 of 8 GPUs do not answer"


def test_one_lost_gpu_beside_seven_that_answer_is_found(tools):
    """The program then says a sentence and goes on, with exit code 0 or another. It is lost, and none is missing besides."""
    found = failures(tools.play(log(*(gpu(n) for n in range(8) if n != 3)), SENTENCES[0]))
    assert "GPU 3" in found.pop("gpu-lost")
    assert found == {}


@pytest.mark.parametrize("out", ["", "Segmentation fault", log(gpu(0))[:-30], "<?xml version='1.0'?><a></b>"])
def test_an_answer_that_is_none_is_no_pass(tools, out):
    """Half an XML, or none, is the probe's trouble."""
    with pytest.raises(ProbeError):
        tools.play(out, code=1)


def test_without_the_program_there_is_no_answer(tools):
    """A node with GPUs and without nvidia-smi is told as broken."""
    with pytest.raises(ProbeError, match="nvidia-smi is in none of"):
        nvidia.nvidia({}, tools.place)


def links(up, model="NVIDIA H100 80GB HBM3"):
    lines = [f"\t Link {n}: " + ("26.562 GB/s" if n < up else "<inactive>") for n in range(18)]
    return f"GPU 0: {model} (UUID: GPU-1)\n" + "\n".join(lines) + "\n"


def test_an_inactive_nvlink_is_found_by_the_number_that_the_machine_type_has():
    """Seventeen of eighteen are too few for an H100."""
    assert failures(nvidia.parse_links(links(18)), "nvlink") == {}
    assert failures(nvidia.parse_links(links(17)), "nvlink")["gpu-nvlink"].endswith("has 17 NVLinks up instead of 18")


def test_only_a_link_with_a_bandwidth_is_up():
    """A word that nobody has seen yet does not count as one."""
    assert nvidia.parse_links("GPU 0: X\n\t Link 0: Sleeping\n\t Link 1: 25.781 GB/s\n")[0]["up"] == 1


def test_gpus_without_nvlink_fail_nothing(tools):
    """A PCIe card has no links, and none is missed."""
    tools.set("GPU 0: NVIDIA L4 (UUID: GPU-1)\n")
    assert failures(nvidia.nvlink({}, tools.place), "nvlink") == {}


CARD = {
    "Temperature (Sensor junction) (C)": "61.0",
    "GPU use (%)": "99",
    "Card Series": "AMD Instinct MI300X OAM",
    "PCIe Replay Count": "0",
}


def rocm(folder, out, code=0):
    (folder / "answer").write_text(out)
    (folder / "rocm-smi").write_text(f"#!/bin/sh\ncat {folder}/answer\nexit {code}\n")
    (folder / "rocm-smi").chmod(0o755)
    return amd.amd({"count": 2}, ProbePaths(tools=(folder,)))


def test_amd_gpus_are_counted_and_their_heat_is_judged_by_their_type(tmp_path):
    """rocm-smi's JSON, with a warning before it."""
    both = {"card0": CARD, "card1": CARD, "system": {"Driver version": "6.7.0"}}
    assert (
        failures(rocm(tmp_path, "WARNING: AMD GPU device(s) is/are in a low-power state.\n" + json.dumps(both)), "amd")
        == {}
    )
    hot = CARD | {"Temperature (Sensor junction) (C)": "104.0"}
    found = failures(rocm(tmp_path, json.dumps({"card0": hot})), "amd")
    assert found["amd-gpu-count"] == "1 of 2 GPUs do not answer"
    assert "has 104 °C, and slows down at 100" in found["amd-gpu-hot"]


def test_an_answer_of_rocm_smi_that_is_none_is_no_pass(tmp_path):
    """Words instead of JSON are the probe's trouble."""
    with pytest.raises(ProbeError, match="no JSON"):
        rocm(tmp_path, "ERROR: No AMD GPUs", 1)
