"""The dispatch table: whatever is served can be done, through whichever door."""

import pytest

from drachma.server.pipeline import dispatcher
from drachma.server.surface import resources
from tests.unit.server import served


@pytest.mark.parametrize("resource", [pytest.param(each, id=each.qualified) for each in served.CATALOG.resources])
def test_every_verb_that_is_served_has_an_operation(resource: resources.Resource) -> None:
    whole = dispatcher.OBJECT.keys() | dispatcher.WRITES.keys()
    assert set(resource.verbs) <= whole
    for below in resource.subresources:
        own = dispatcher.BELOW.get(below.name, {}).keys() | dispatcher.WRITES_BELOW.get(below.name, {}).keys()
        assert set(below.verbs) <= (own if below.kind else whole)
