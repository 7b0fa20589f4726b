"""Public charts install on simulated nodes and reach their end state: all pods ready, all objects served."""

import pytest

from tests.peers import charts, programs
from tests.scenarios import nodecluster


@pytest.mark.parametrize("chart", [pytest.param(each, id=each.name) for each in charts.CHARTS])
def test_a_chart_reaches_its_end_state(chart: charts.Chart) -> None:
    try:
        programs.built("helm")
        source = charts.fetch(chart)
    except programs.MissingError as missing:
        pytest.skip(str(missing))
    with nodecluster.control_plane("--nodes", "3") as server:
        assert charts.install(chart, source, server.kubeconfig) > 0
