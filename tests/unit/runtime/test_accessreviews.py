"""What API servers say of users is remembered for a while, and no longer."""

from collections.abc import Mapping
from typing import Any, cast

import pytest

from drachma.client import Client
from drachma.runtime.accessreviews import AccessReviews, Action, User, user_of_certificate
from drachma.testing import manualclock

ACTION = Action(verb="get", resource="nodes", name="n", subresource="proxy")


class _ApiServer:
    def __init__(self) -> None:
        self.asked: list[Mapping[str, Any]] = []
        self.allows = True

    async def create_document(self, _: Any, document: Mapping[str, Any]) -> Mapping[str, Any]:
        self.asked.append(document["spec"])
        return {"status": {"allowed": self.allows, "authenticated": self.allows, "user": {"username": "ann"}}}


@pytest.mark.parametrize(
    ("allows", "seconds"), [pytest.param(True, 300, id="leave"), pytest.param(False, 30, id="refusal")]
)
async def test_verdicts_are_kept_for_a_while(allows: bool, seconds: float) -> None:
    server, clock = _ApiServer(), manualclock.ManualClock()
    server.allows = allows
    reviews = AccessReviews(clock, seconds=300, refusal_seconds=30)
    for _ in range(3):
        assert await reviews.may(cast(Client, server), User("ann"), ACTION) is allows
    assert len(server.asked) == 1
    await clock.advance(seconds + 1)
    server.allows = not allows
    assert await reviews.may(cast(Client, server), User("ann"), ACTION) is not allows


async def test_what_is_no_resource_is_asked_about_by_its_path() -> None:
    server = _ApiServer()
    reviews = AccessReviews(manualclock.ManualClock(), seconds=1, refusal_seconds=1)
    assert await reviews.may(cast(Client, server), User("ann", ("devs",)), Action(verb="get", path="/metrics"))
    (spec,) = server.asked
    assert spec["nonResourceAttributes"] == {"verb": "get", "path": "/metrics"}
    assert (spec["user"], spec["groups"]) == ("ann", ["devs"])


async def test_tokens_stand_for_users() -> None:
    server, clock = _ApiServer(), manualclock.ManualClock()
    reviews = AccessReviews(clock, seconds=300, refusal_seconds=30)
    for header in ("", "Basic x", "Bearer "):
        assert await reviews.user_of(cast(Client, server), header) is None
    assert not server.asked
    assert await reviews.user_of(cast(Client, server), "bearer t") == User("ann")
    server.allows = False
    assert await reviews.user_of(cast(Client, server), "Bearer t") == User("ann")
    await clock.advance(31)
    assert await reviews.user_of(cast(Client, server), "Bearer t") is None


@pytest.mark.parametrize(
    ("subject", "want"),
    [
        pytest.param(
            [("organizationName", "devs"), ("commonName", "a"), ("commonName", "b")],
            User("b", ("devs", "system:authenticated")),
            id="last-name-counts",
        ),
        pytest.param([("organizationName", "devs")], None, id="no-name"),
    ],
)
def test_certificates_stand_for_users(subject: list[tuple[str, str]], want: User | None) -> None:
    assert user_of_certificate({"subject": tuple((pair,) for pair in subject)}) == want
