"""The scripts that measure GPUs, against what the programs print. No GPU was at hand: on real ones they have not run yet."""

import importlib.util
import json
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest

FOLDER = Path(__file__).parents[3] / "images/slurm/deep"


def script(name: str) -> ModuleType:
    """One of the scripts; they import their helper by its bare name."""
    found = {}
    for each in ("output", name):
        spec = importlib.util.spec_from_file_location(each, FOLDER / f"{each}.py")
        assert spec
        assert spec.loader
        found[each] = importlib.util.module_from_spec(spec)
        before = sys.modules.get("output")
        sys.modules["output"] = found["output"]
        try:
            spec.loader.exec_module(found[each])
        finally:
            sys.modules.pop("output")
            if before:
                sys.modules["output"] = before
    return found[name]


NCCL, BURN, DCGM = script("nccl"), script("burn"), script("dcgm")

HEAD = "# nThread 1 nGpus 8 minBytes 8589934592 maxBytes 8589934592 step: 1048576(bytes) iters: 20 validation: 1\n#\n# Using devices\n"
COLUMNS = """#
#                                                              out-of-place                       in-place
#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw #wrong
#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s)
"""


def ranks(*hosts: str, gpus: int = 8, model: str = "NVIDIA H100 80GB HBM3") -> str:
    """The lines in which nccl-tests names who takes part."""
    lines = (
        f"#  Rank {rank * gpus + gpu:2} Group  0 Pid  {4000 + rank} on {host:>10} device {gpu:2} [0000:{gpu:02x}:00] {model}\n"
        for rank, host in enumerate(hosts)
        for gpu in range(gpus)
    )
    return "".join(lines)


ROW = "  8589934592    2147483648     float     sum      -1    31548  272.28  476.49      0    31533  272.41  476.72      0\n"
END = "# Out of bounds values : 0 OK\n# Avg bus bandwidth    : 476.605 \n#\n"


def test_nccl_gives_the_better_of_both_ways_and_the_model():
    """Out of place and in place are two measurements of the same links."""
    found = NCCL.parse(HEAD + ranks("w-0") + COLUMNS + ROW + END)
    assert (found["busbw"], found["wrong"], found["ranks"]) == (476.72, 0, 8)
    assert NCCL.reading(found, 8, 1, "w-0") == {
        "of": "w-0",
        "nodes": 1,
        "busbw": 476.72,
        "wrong": 0,
        "ranks": 8,
        "model": "NVIDIA H100 80GB HBM3",
    }


def test_nccl_over_nodes_names_them():
    """The hosts of the ranks are the Slurm nodes."""
    found = NCCL.parse(HEAD + ranks("w-0", "w-1") + COLUMNS + ROW + END)
    assert NCCL.reading(found, 8, 2, "w-0")["of"] == "w-0 w-1"


def test_nccl_that_was_built_without_mpi_is_told():
    """Each node by itself is no group."""
    found = NCCL.parse(HEAD + ranks("w-0") + COLUMNS + ROW + END)
    assert NCCL.reading(found, 8, 2, "w-0") == "8 of 16 GPUs took part: was it built with MPI?"


def test_nccl_counts_wrong_sums():
    """What the program itself counts is taken, also where it is in another column."""
    wrong = (
        HEAD
        + ranks("w-0")
        + COLUMNS
        + ROW.replace("      0 ", "     12 ")
        + END.replace("values : 0 OK", "values : 12 FAILED")
    )
    assert NCCL.parse(wrong)["wrong"] == 12
    newer = (
        ranks("w-0", gpus=2).replace("#  Rank", "#   Rank")
        + "  34359738368 8589934592  float   sum    -1  875713  39.24   68.66       3\n"
    )
    assert NCCL.parse(newer) == {
        "busbw": 68.66,
        "wrong": 3,
        "ranks": 2,
        "model": "NVIDIA H100 80GB HBM3",
        "hosts": ["w-0"],
    }


@pytest.mark.parametrize(
    "text",
    [
        "",
        "w-0: Test CUDA failure common.cu:1023 'no CUDA-capable device is detected'\n",
        HEAD + ranks("w-0") + COLUMNS,
        HEAD + ranks("w-0") + COLUMNS + "  8589934592    2147483648     float     sum      -1\n",
        HEAD + ranks("w-0") + COLUMNS + "w-0: Test NCCL failure all_reduce.cu:44 'unhandled system error / '\n",
    ],
)
def test_nccl_that_ends_without_a_result_gives_none(text: str):
    """No line of numbers, no reading."""
    assert NCCL.parse(text) is None


class FakeGpus:
    """As much of PyTorch as the burn uses; a product is a number, and GPU 2 has its own idea of it once."""

    bfloat16, slow, wrong, count = "bf16", 1, 2, 4

    def __init__(self) -> None:
        self.products = [0] * self.count
        self.cuda = SimpleNamespace(
            device_count=lambda: self.count,
            device=lambda index: Chosen(self, index),
            Event=self._event,
            get_device_name=lambda index: f"model {index}",
        )
        self.Generator = lambda: SimpleNamespace(manual_seed=lambda seed: seed)
        self.current = 0

    def _event(self, enable_timing: bool) -> "FakeEvent":
        assert enable_timing
        return FakeEvent(self)

    def randn(self, rows: int, columns: int, generator: int) -> SimpleNamespace:
        return SimpleNamespace(to=lambda device, _: int(device.removeprefix("cuda:")))

    def matmul(self, a: int, b: int) -> "Product":
        self.products[a] += 1
        return Product(8.0 if a == self.wrong and self.products[a] == 5 else 7.0)

    def equal(self, one: "Product", other: "Product") -> bool:
        return one.value == other.value


class Product:
    """A matrix of one number."""

    def __init__(self, value: float) -> None:
        self.value = value

    def double(self) -> "Product":
        return self

    abs = sum = double

    def __float__(self) -> float:
        return self.value


class Chosen:
    """The GPU on which things are done."""

    def __init__(self, torch: FakeGpus, index: int) -> None:
        self.torch, self.index = torch, index

    def __enter__(self) -> None:
        self.torch.current = self.index

    def __exit__(self, *_: object) -> None:
        pass


class FakeEvent:
    """A moment on a GPU: 8 products take 8 ms, on the slow one 16."""

    def __init__(self, torch: FakeGpus) -> None:
        self.torch = torch

    def record(self) -> None:
        self.index = self.torch.current

    def synchronize(self) -> None:
        pass

    def elapsed_time(self, other: "FakeEvent") -> float:
        return 16.0 if self.index == self.torch.slow else 8.0


def test_burn_finds_the_slow_gpu_and_the_one_that_computes_wrongly():
    """Each GPU has a reading; one wrong product of one GPU is counted once."""
    found = BURN.burn(FakeGpus(), 0.01, 1000)
    assert [each["part"] for each in found] == ["GPU 0", "GPU 1", "GPU 2", "GPU 3"]
    assert [each["tflops"] for each in found] == [2.0, 1.0, 2.0, 2.0]
    assert [each["wrong"] for each in found] == [0, 0, 1, 0]
    assert all(each["rounds"] % 8 == 0 and each["rounds"] for each in found)


def test_burn_finds_a_gpu_that_is_always_wrong():
    """Its products equal each other, and not those of its peers."""
    gpus = FakeGpus()
    gpus.matmul = lambda a, _: Product(9.0 if a == 3 else 7.0)  # type: ignore[method-assign]
    found = BURN.burn(gpus, 0.01, 1000)
    assert [each["wrong"] > 0 for each in found] == [False, False, False, True]


def dcgm(key: str, *results: dict[str, object]) -> str:
    """What dcgmi prints around results of one test."""
    tests = [
        {"name": "software", "results": [{"entity_group": "GPU", "entity_id": 0, "status": "Pass"}]},
        {"name": "memory", "results": list(results)},
        None,
        {"name": "pcie", "results": [{"entity_id": 0, "status": "Skip"}]},
    ]
    return "Successfully ran diagnostic.\n" + json.dumps(
        {key: {"test_categories": [{"category": "Hardware", "tests": tests}]}}
    )


def test_dcgm_that_passes_says_how_much_ran():
    """What was skipped did not run."""
    found = DCGM.parse(dcgm("DCGM Diagnostic", {"entity_group": "GPU", "entity_id": 0, "status": "Pass"}))
    assert found == {"tests": 2, "failed": 0, "configuration": 0, "why": ""}


def test_dcgm_names_the_test_the_gpu_and_the_reason():
    """In the shape of DCGM 4, and in that of DCGM 3."""
    four = {
        "entity_id": 5,
        "status": "Fail",
        "warnings": [{"warning": "GPU 5 had\n uncorrectable errors", "error_severity": 2}],
    }
    three = {"gpu_ids": "5", "status": "FAIL", "warnings": ["GPU 5 had uncorrectable errors"]}
    for key, result in (("DCGM Diagnostic", four), ("DCGM GPU Diagnostic", three)):
        found = DCGM.parse(dcgm(key, result))
        assert (found["tests"], found["failed"]) == (2, 1)
        assert found["why"] == "memory of GPU 5: GPU 5 had uncorrectable errors"


def test_dcgm_does_not_blame_a_node_for_how_it_is_set_up():
    """Persistence mode that is off is the same everywhere."""
    result = {
        "entity_id": 0,
        "status": "Fail",
        "warnings": [{"warning": "Persistence mode is disabled", "error_severity": 5}],
    }
    found = DCGM.parse(dcgm("DCGM Diagnostic", result))
    assert (found["failed"], found["configuration"]) == (0, 1)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Error: unable to establish a connection to the specified host: localhost",
        "{",
        '{"DCGM Diagnostic": {"version": "4.2.3"}}',
    ],
)
def test_dcgm_that_ran_nothing_gives_no_reading(text: str):
    """No host engine, a torn answer, no test that ran."""
    assert DCGM.parse(text) is None
