"""Hints of DynamicResources for pods that wait for claims."""

from typing import Any

import pytest

from drachma.api import gates
from drachma.scheduler.plugins.dynamicresources import plugin
from drachma.scheduler.snapshot import Snapshot
from drachma.testing import claim
from drachma.testing import pod as a_pod

ALLOCATED = claim("c").uid("c").allocated(("r", "d", "p", "x")).build()
FREE = claim("c").uid("c").build()
RESERVED = claim("c").uid("c").allocated(("r", "d", "p", "x")).reserved_for("q", uid="q").build()
OTHER = claim("other").uid("other").build()


@pytest.mark.parametrize(
    ("old", "new", "want"),
    [
        pytest.param(None, FREE, True, id="own-claim-created"),
        pytest.param(FREE, ALLOCATED, True, id="own-claim-allocated"),
        pytest.param(ALLOCATED, RESERVED, True, id="own-claim-reserved"),
        pytest.param(FREE, FREE, False, id="nothing-in-the-status"),
        pytest.param(None, OTHER, False, id="claim-of-another-pod"),
        pytest.param(
            claim("other").uid("other").allocated(("r", "d", "p", "x")).build(), OTHER, True, id="devices-given-back"
        ),
        pytest.param(ALLOCATED, None, True, id="deleted-with-its-devices"),
        pytest.param(FREE, None, False, id="deleted-without-devices"),
    ],
)
def test_what_changes_of_claims_help(old: Any, new: Any, want: bool) -> None:
    snapshot = Snapshot(gates.ALL)
    snapshot.claims.observe(FREE)
    waiting = a_pod("p").claim("x", claim="c").build()
    hint = next(each for each in plugin.QueueingHints(snapshot).all() if each.resource == "ResourceClaim")
    assert hint.helps(waiting, old, new) is want
