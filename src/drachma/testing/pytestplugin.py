"""The pytest plugin of drachma: a fixture with a whole cluster, for the tests of any project.

::

    def test_training_gets_a_gpu(drachma_cluster):
        drachma_cluster.apply(pathlib.Path("train.yaml").read_text())
        assert drachma_cluster.pod("train").running().devices

``@pytest.mark.drachma(nodes=3, profile="gpu-server")`` says what the cluster is like.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

import pytest

if TYPE_CHECKING:
    from drachma.testing.syncclusters import SyncCluster

_MARK: Final = "drachma"


def pytest_configure(config: pytest.Config) -> None:
    """Register the mark."""
    config.addinivalue_line("markers", f"{_MARK}(nodes, profile, drivers): what the cluster of drachma_cluster is like")


@pytest.fixture
def drachma_cluster(request: pytest.FixtureRequest) -> Iterator[SyncCluster]:
    """Run a cluster of one node with GPUs, or as the mark ``drachma`` says, for one test."""
    # Every run of pytest loads this module, and few need a control plane.
    from drachma.testing.syncclusters import sync_cluster

    mark = request.node.get_closest_marker(_MARK)
    with sync_cluster(**(mark.kwargs if mark is not None else {})) as started_cluster:
        yield started_cluster
