"""One control plane for all tests here; each test has a namespace of its own."""

import itertools
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from soperator.kube.api import Api
from soperator.kube.kinds import NAMESPACE
from tests.runtime.server import ControlPlane, find_binaries


@pytest.fixture(scope="session")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """A running control plane."""
    binaries: Path | None = find_binaries()
    if binaries is None:
        pytest.skip("no kube-apiserver and etcd in the cache: run `make cluster` once to build them")
    plane = ControlPlane(binaries, tmp_path_factory.mktemp("plane"))
    try:
        plane.start()
        yield plane
    finally:
        plane.stop()


@pytest.fixture(scope="session")
def numbers() -> Iterator[int]:
    """Numbers for namespaces."""
    return itertools.count(1)


@pytest.fixture
async def api(plane: ControlPlane) -> AsyncIterator[Api]:
    """A client of the control plane."""
    async with plane.api() as api:
        yield api


@pytest.fixture
async def namespace(api: Api, numbers: Iterator[int]) -> str:
    """A namespace that no other test uses."""
    name = f"test-{next(numbers)}"
    await api.create(NAMESPACE, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    return name
