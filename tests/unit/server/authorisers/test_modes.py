"""The modes of authorisation by name."""

import pytest

from drachma import errors
from drachma.server.access.authorization import Attributes
from drachma.server.authorisers import modes
from drachma.server.user import User
from drachma.store import memory


@pytest.mark.parametrize("wanted", [["AlwaysAllow"], ["RBAC"], ["Node", "RBAC"]])
async def test_masters_may_do_everything(wanted: list[str]) -> None:
    made = modes.make(memory.MemoryStore(), wanted)
    root = User(name="root", groups=("system:masters",))
    assert made.authorise(Attributes(user=root, verb="get", path="/metrics")).is_allowed


async def test_others_may_do_nothing_without_a_role() -> None:
    question = Attributes(user=User(name="ann"), verb="get", path="/metrics")
    assert not modes.make(memory.MemoryStore(), ["Node", "RBAC"]).authorise(question).is_allowed
    assert modes.make(memory.MemoryStore(), ["AlwaysAllow"]).authorise(question).is_allowed


@pytest.mark.parametrize(
    ("wanted", "want"),
    [
        pytest.param([], "no authorization mode; there are AlwaysAllow, Node, RBAC", id="none"),
        pytest.param(["ABAC"], "authorization mode 'ABAC' is none of AlwaysAllow, Node, RBAC", id="unknown"),
        pytest.param(["RBAC", "RBAC"], "an authorization mode comes twice: RBAC,RBAC", id="twice"),
    ],
)
def test_modes_that_there_are_not(wanted: list[str], want: str) -> None:
    with pytest.raises(errors.InvalidValueError, match=f"^{want}$"):
        modes.check(wanted)
