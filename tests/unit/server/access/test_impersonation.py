"""Impersonation: the permissions of each mode, the groups that come with a user, and users that are never allowed."""

from typing import Any

import pytest

from drachma.server import status
from drachma.server.access import impersonation
from drachma.server.access.authorization import ALLOWED, NO_OPINION, NO_RULES, Attributes, Opinion, Rules
from drachma.server.access.impersonation import Impersonation
from drachma.server.user import User
from tests.unit.server import client

ANN = User(name="ann", groups=("system:authenticated",))
LIST = Attributes(user=ANN, verb="list", version="v1", resource="pods", namespace="n")
BOB = User(name="bob")
NODE = User(name="system:node:m")
ACCOUNT = User(name="system:serviceaccount:n:app")
AGENT = User(
    name="system:serviceaccount:n:agent",
    extra={"authentication.kubernetes.io/node-name": ("m",), "authentication.kubernetes.io/pod-name": ("p",)},
)


class Permits:
    """Allows what is listed as ``verb group/resource[/subresource] name``, and remembers who asked."""

    name = "permits"

    def __init__(self, *permits: str) -> None:
        self._permits = set(permits)
        self.users: list[User] = []

    def authorise(self, attributes: Attributes) -> Opinion:
        self.users.append(attributes.user)
        asked = f"{attributes.verb} {attributes.group}/{attributes.full_resource} {attributes.name}".strip()
        return ALLOWED if asked in self._permits else NO_OPINION

    def rules(self, user: User, namespace: str) -> Rules:
        return NO_RULES


AUTHN = "authentication.k8s.io"
USERS = ("impersonate-on:user-info:list /pods", f"impersonate:user-info {AUTHN}/users bob")
ALLOWED_CASES = [
    pytest.param(BOB, ("impersonate /users bob",), ("system:authenticated",), id="a-user-the-old-way"),
    pytest.param(BOB, USERS, ("system:authenticated",), id="a-user-on-pods"),
    pytest.param(
        ACCOUNT,
        ("impersonate /serviceaccounts app",),
        ("system:serviceaccounts", "system:serviceaccounts:n", "system:authenticated"),
        id="an-account-the-old-way",
    ),
    pytest.param(
        ACCOUNT,
        ("impersonate-on:serviceaccount:list /pods", f"impersonate:serviceaccount {AUTHN}/serviceaccounts app"),
        ("system:serviceaccounts", "system:serviceaccounts:n", "system:authenticated"),
        id="an-account-on-pods",
    ),
    pytest.param(NODE, ("impersonate /users system:node:m",), ("system:authenticated",), id="a-node-the-old-way"),
    pytest.param(
        NODE,
        ("impersonate-on:arbitrary-node:list /pods", f"impersonate:arbitrary-node {AUTHN}/nodes m"),
        ("system:nodes", "system:authenticated"),
        id="any-node-on-pods",
    ),
    pytest.param(
        User(name="system:anonymous"),
        ("impersonate /users system:anonymous",),
        ("system:unauthenticated",),
        id="nobody",
    ),
    pytest.param(
        User(name="bob", groups=("system:unauthenticated",)),
        ("impersonate /users bob", "impersonate /groups system:unauthenticated"),
        ("system:unauthenticated",),
        id="not-known",
    ),
    pytest.param(
        User(name="bob", groups=("a", "b", "c", "d")),
        (*USERS, f"impersonate:user-info {AUTHN}/groups *"),
        ("a", "b", "c", "d", "system:authenticated"),
        id="many-groups-at-once",
    ),
]


@pytest.mark.parametrize(("wanted", "permits", "groups"), ALLOWED_CASES)
def test_who_may_becomes_somebody_else(wanted: User, permits: tuple[str, ...], groups: tuple[str, ...]) -> None:
    assert Impersonation(Permits(*permits)).become(wanted, LIST).user == User(
        name=wanted.name, uid=wanted.uid, groups=groups, extra=wanted.extra
    )


def test_uid_and_extra_have_to_be_allowed_too() -> None:
    wanted = User(name="bob", uid="1", extra={"scopes": ("view",)})
    permits = ("impersonate /users bob", f"impersonate {AUTHN}/uids 1", f"impersonate {AUTHN}/userextras/scopes view")
    found = Impersonation(Permits(*permits)).become(wanted, LIST).user
    assert (found.uid, found.extra) == ("1", {"scopes": ("view",)})
    for missing in permits:
        with pytest.raises(status.StatusError):
            Impersonation(Permits(*(set(permits) - {missing}))).become(wanted, LIST)


def test_an_agent_acts_as_the_node_that_it_is_on() -> None:
    permits = Permits(
        "impersonate-on:associated-node:list /pods",
        f"impersonate:associated-node {AUTHN}/nodes *",
    )
    found = Impersonation(permits).become(NODE, Attributes(user=AGENT, verb="list", version="v1", resource="pods"))
    assert found.constraint == "impersonate:associated-node"
    assert found.user.groups == ("system:nodes", "system:authenticated")
    keys = ("authentication.kubernetes.io/node-name", "authentication.kubernetes.io/pod-name")
    assert permits.users[0].extra == {"authentication.kubernetes.io/associated-node-keys": keys}


def test_and_as_no_other() -> None:
    permits = Permits("impersonate-on:associated-node:list /pods", f"impersonate:associated-node {AUTHN}/nodes *")
    with pytest.raises(status.StatusError):
        Impersonation(permits).become(
            User(name="system:node:other"), Attributes(user=AGENT, verb="list", version="v1", resource="pods")
        )


REFUSED = [
    pytest.param(
        BOB,
        (),
        'pods is forbidden: User "ann" cannot impersonate-on:user-info:list resource "pods" in API group "" '
        'in the namespace "n"',
        id="no-rights",
    ),
    pytest.param(
        BOB,
        USERS[:1],
        'users.authentication.k8s.io "bob" is forbidden: User "ann" cannot impersonate:user-info resource "users" in '
        'API group "authentication.k8s.io" at the cluster scope',
        id="not-this-user",
    ),
    pytest.param(
        User(name="bob", groups=("system:masters",)),
        (*USERS, f"impersonate:user-info {AUTHN}/groups system:masters"),
        'groups.authentication.k8s.io "system:masters" is forbidden: User "ann" cannot impersonate:user-info resource '
        '"groups" in API group "authentication.k8s.io" at the cluster scope: '
        "impersonating the system:masters group is not allowed",
        id="masters",
    ),
    pytest.param(
        User(name="bob", groups=("",)), USERS, "impersonating the empty string group is not allowed", id="empty-group"
    ),
    pytest.param(
        User(name="bob", extra={"scopes": ("view",)}),
        USERS,
        'extra.key: Invalid value: "scopes": must be a domain-prefixed path (such as "acme.io/foo")',
        id="extra-key",
    ),
    pytest.param(
        User(name="bob", extra={"example.com/scopes": ("",)}),
        USERS,
        "impersonating the empty string value in extra is not allowed",
        id="empty-extra",
    ),
]


@pytest.mark.parametrize(("wanted", "permits", "message"), REFUSED)
def test_who_may_not_is_told_what(wanted: User, permits: tuple[str, ...], message: str) -> None:
    with pytest.raises(status.StatusError) as refusal:
        Impersonation(Permits(*permits)).become(wanted, LIST)
    assert refusal.value.code == 403
    assert message in refusal.value.document["message"]


def test_the_mode_that_was_allowed_last_is_the_one_that_is_told_of() -> None:
    modes = Impersonation(Permits("impersonate /users bob"))
    modes.become(BOB, LIST)
    with pytest.raises(status.StatusError, match='cannot impersonate resource "users"'):
        modes.become(User(name="eve"), LIST)


def headers(*pairs: tuple[str, str]) -> list[tuple[bytes, bytes]]:
    return [(name.lower().encode(), value.encode()) for name, value in pairs]


@pytest.mark.parametrize(
    ("given", "want"),
    [
        pytest.param(headers(("Accept", "x")), None, id="none"),
        pytest.param(
            headers(
                ("Impersonate-User", "bob"),
                ("Impersonate-Group", "a"),
                ("Impersonate-Group", "b"),
                ("Impersonate-Uid", "1"),
                ("Impersonate-Extra-acme.io%2Fscopes", "v"),
                ("Impersonate-Extra-acme.io%2Fscopes", "w"),
            ),
            User(name="bob", uid="1", groups=("a", "b"), extra={"acme.io/scopes": ("v", "w")}),
            id="everything",
        ),
        pytest.param(headers(("Impersonate-Unknown", "x")), None, id="another-header"),
    ],
)
def test_headers_name_a_user(given: list[tuple[bytes, bytes]], want: User | None) -> None:
    assert impersonation.requested_user(given) == want


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        pytest.param(
            ("Impersonate-Group", "dev"),
            'UID:"", Groups:[]string{"dev"}, Extra:map[string][]string(nil)',
            id="group",
        ),
        pytest.param(
            ("Impersonate-Uid", "1"), 'UID:"1", Groups:[]string(nil), Extra:map[string][]string(nil)', id="uid"
        ),
        pytest.param(
            ("Impersonate-Extra-k", "v"),
            'UID:"", Groups:[]string(nil), Extra:map[string][]string{"k":[]string{"v"}}',
            id="extra",
        ),
    ],
)
def test_nobody_without_a_name(given: tuple[str, str], shown: str) -> None:
    with pytest.raises(status.StatusError) as refusal:
        impersonation.requested_user(headers(given))
    message = f'requested &user.DefaultInfo{{Name:"", {shown}}} without impersonating a user name'
    assert (refusal.value.code, refusal.value.document["message"]) == (400, message)


async def test_a_request_is_made_as_somebody_else() -> None:
    server = await client.start()
    path = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
    answer: Any = await server.call("POST", path, {}, headers={"impersonate-user": "bob"})
    assert answer.body["status"]["userInfo"] == {"username": "bob", "groups": ["system:authenticated"]}
    refused = await server.call("GET", "/healthz", headers={"impersonate-group": "dev"})
    assert refused.code == 400
