"""Opinions on what users may do, what several of them come to, and what who is refused is told."""

import pytest

from drachma.server import status
from drachma.server.access import authorization
from drachma.server.access.authorization import ALLOWED, NO_OPINION, NO_RULES, Attributes, Decision, Opinion, Rules
from drachma.server.user import User
from tests.unit.server import client

ANN = User(name="ann")
DENIED = Opinion(Decision.DENIED, "never")
PUZZLED = Opinion(Decision.NO_OPINION, "who knows")


class Says:
    """Has one opinion on everything."""

    def __init__(self, name: str, opinion: Opinion) -> None:
        self.name = name
        self.opinion = opinion

    def authorise(self, attributes: Attributes) -> Opinion:
        return self.opinion

    def rules(self, user: User, namespace: str) -> Rules:
        return NO_RULES


@pytest.mark.parametrize(
    ("opinions", "want"),
    [
        pytest.param([], NO_OPINION, id="nobody-to-ask"),
        pytest.param([NO_OPINION, ALLOWED], ALLOWED, id="the-second-allows"),
        pytest.param([PUZZLED, DENIED, ALLOWED], DENIED, id="the-first-opinion-counts"),
        pytest.param([ALLOWED, DENIED], ALLOWED, id="the-first-allows"),
        pytest.param(
            [PUZZLED, NO_OPINION, PUZZLED],
            Opinion(Decision.NO_OPINION, "a0: who knows\na2: who knows"),
            id="all-reasons-by-name",
        ),
    ],
)
def test_several_are_asked_in_order(opinions: list[Opinion], want: Opinion) -> None:
    several = authorization.Union([Says(f"a{number}", each) for number, each in enumerate(opinions)])
    assert several.authorise(Attributes(user=ANN, verb="get", path="/")) == want


@pytest.mark.parametrize(
    ("attributes", "message", "details"),
    [
        pytest.param(
            Attributes(user=ANN, verb="get", path="/metrics"),
            'forbidden: User "ann" cannot get path "/metrics": who knows',
            {},
            id="path",
        ),
        pytest.param(
            Attributes(user=ANN, verb="list", resource="pods"),
            'pods is forbidden: User "ann" cannot list resource "pods" in API group "" at the cluster scope: who knows',
            {"kind": "pods"},
            id="collection",
        ),
        pytest.param(
            Attributes(
                user=User(name="<b>&"),
                verb="update",
                group="resource.k8s.io",
                resource="resourceclaims",
                subresource="status",
                name="c",
                namespace="n",
            ),
            'resourceclaims.resource.k8s.io "c" is forbidden: User "&lt;b&gt;&amp;" cannot update resource '
            '"resourceclaims/status" in API group "resource.k8s.io" in the namespace "n": who knows',
            {"name": "c", "group": "resource.k8s.io", "kind": "resourceclaims"},
            id="subresource",
        ),
    ],
)
def test_who_is_refused_is_told_what_and_why(attributes: Attributes, message: str, details: dict[str, str]) -> None:
    with pytest.raises(status.StatusError) as refusal:
        authorization.require(Says("x", PUZZLED), attributes)
    assert refusal.value.document["message"] == message
    assert refusal.value.document["details"] == details
    assert refusal.value.code == 403


@pytest.mark.parametrize(
    ("method", "path"),
    [
        pytest.param("GET", "/api/v1/namespaces/default/pods", id="served"),
        pytest.param("GET", "/api/v1/namespaces/default/pods?watch=1", id="watch"),
        pytest.param("GET", "/api/v1/nothings", id="unserved-resource"),
        pytest.param("GET", "/apis/nothing.example.com/v1/things", id="unserved-group"),
        pytest.param("PUT", "/api/v1/namespaces/default/pods", id="unserved-method"),
        pytest.param("GET", "/apis", id="discovery"),
        pytest.param("GET", "/metrics", id="metrics"),
        pytest.param("GET", "/openapi/v3", id="openapi"),
        pytest.param("GET", "/nothing", id="nothing"),
    ],
)
async def test_who_may_do_nothing_learns_nothing(method: str, path: str) -> None:
    server = await client.start(authoriser=Nobody())
    answer = await server.call(method, path)
    assert (answer.code, answer.body["reason"]) == (403, "Forbidden")


class Nobody:
    """Lets only the server itself do anything."""

    name = "nobody"

    def authorise(self, attributes: Attributes) -> Opinion:
        return ALLOWED if attributes.user.name == "system:apiserver" else NO_OPINION

    def rules(self, user: User, namespace: str) -> Rules:
        return NO_RULES
