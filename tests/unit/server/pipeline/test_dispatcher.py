"""The dispatch table: whatever is served can be done, through whichever door."""

import pytest

from drachma.server.pipeline import dispatcher
from drachma.server.surface import resources
from tests.unit.server import served


@pytest.mark.parametrize("resource", [pytest.param(each, id=each.qualified) for each in served.CATALOG.resources])
def test_every_verb_that_is_served_has_an_operation(resource: resources.Resource) -> None:
    assert set(resource.verbs) <= dispatcher.OBJECT.keys()
    for below in resource.subresources:
        table = dispatcher.SUBRESOURCES[below.name] if below.kind else dispatcher.OBJECT
        assert set(below.verbs) <= table.keys()
