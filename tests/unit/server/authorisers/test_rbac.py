"""RBAC on a store: who has which role, and what is said of it."""

from typing import Any

import pytest

from drachma.server.access.authorization import NO_OPINION, Attributes, Decision, Opinion
from drachma.server.authorisers import roles
from drachma.server.authorisers.modes import RBAC
from drachma.server.user import User
from drachma.store import memory, protocol, record

GET_PODS = {"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}
ANN = User(name="ann", groups=("staff", "system:authenticated"))
ROBOT = User(name="system:serviceaccount:lab:robot")


class Cluster:
    """A store with roles and bindings, and RBAC on it."""

    def __init__(self) -> None:
        self.store = memory.MemoryStore(limits=protocol.Limits(history_events=4))
        self.rbac = RBAC(roles.Roles(self.store))

    async def role(self, name: str, *rules: dict[str, Any], namespace: str = "") -> None:
        key = record.Key(roles.ROLES if namespace else roles.CLUSTER_ROLES, namespace, name)
        await self._put(key, {"rules": list(rules)})

    async def bind(self, name: str, *subjects: tuple[str, str], namespace: str = "", kind: str = "ClusterRole") -> None:
        key = record.Key(roles.BINDINGS if namespace else roles.CLUSTER_BINDINGS, namespace, name)
        role = {"kind": kind, "name": name}
        await self._put(key, {"roleRef": role, "subjects": [_subject(kind, text) for kind, text in subjects]})

    async def drop(self, resource: str, name: str) -> None:
        await self.store.delete(record.Key(resource, "", name))

    async def _put(self, key: record.Key, content: dict[str, Any]) -> None:
        draft = record.stamped({"metadata": {"name": key.name}, **content})
        stored = self.store.get(key)
        if stored is None:
            await self.store.create(key, draft)
        else:
            await self.store.update(key, draft, revision=stored.revision)

    def ask(self, user: User, namespace: str = "", *, verb: str = "get") -> Opinion:
        return self.rbac.authorise(Attributes(user=user, verb=verb, resource="pods", name="p", namespace=namespace))


def _subject(kind: str, text: str) -> dict[str, str]:
    namespace, _, name = text.rpartition("/")
    return {"kind": kind, "name": name, **({"namespace": namespace} if namespace else {})}


@pytest.fixture
def cluster() -> Cluster:
    return Cluster()


@pytest.mark.parametrize(
    ("subject", "user", "want"),
    [
        pytest.param(("User", "ann"), ANN, 'User "ann"', id="user"),
        pytest.param(("Group", "staff"), ANN, 'Group "staff"', id="group"),
        pytest.param(("ServiceAccount", "lab/robot"), ROBOT, 'ServiceAccount "robot/lab"', id="service-account"),
    ],
)
async def test_a_cluster_binding_is_for_all_namespaces(
    cluster: Cluster, subject: tuple[str, str], user: User, want: str
) -> None:
    await cluster.role("r", GET_PODS)
    await cluster.bind("r", ("User", "somebody"), subject)
    reason = f'RBAC: allowed by ClusterRoleBinding "r" of ClusterRole "r" to {want}'
    assert cluster.ask(user) == cluster.ask(user, "lab") == Opinion(Decision.ALLOWED, reason)
    assert cluster.ask(user, verb="delete") == NO_OPINION


async def test_a_binding_is_for_its_namespace(cluster: Cluster) -> None:
    await cluster.role("r", GET_PODS, namespace="lab")
    await cluster.bind("r", ("ServiceAccount", "robot"), namespace="lab", kind="Role")
    reason = 'RBAC: allowed by RoleBinding "r/lab" of Role "r" to ServiceAccount "robot/lab"'
    assert cluster.ask(ROBOT, "lab") == Opinion(Decision.ALLOWED, reason)
    assert cluster.ask(ROBOT) == cluster.ask(ROBOT, "other") == NO_OPINION


async def test_roles_that_are_not_there(cluster: Cluster) -> None:
    await cluster.bind("a", ("User", "ann"))
    await cluster.bind("b", ("User", "ann"), namespace="lab", kind="Role")
    one = 'clusterrole.rbac.authorization.k8s.io "a" not found'
    two = 'role.rbac.authorization.k8s.io "b" not found'
    assert cluster.ask(ANN).reason == f"RBAC: {one}"
    assert cluster.ask(ANN, "lab").reason == f"RBAC: [{one}, {two}]"
    assert cluster.rbac.rules(ANN, "lab").problem == f"[{one}, {two}]"


async def test_changes_count_at_once(cluster: Cluster) -> None:
    assert not cluster.ask(ANN).is_allowed
    await cluster.bind("r", ("User", "ann"), ("Group", "staff"))
    await cluster.role("r", GET_PODS)
    assert cluster.ask(ANN).is_allowed
    await cluster.bind("r", ("User", "bob"))
    assert not cluster.ask(ANN).is_allowed
    await cluster.bind("r", ("Group", "staff"))
    assert cluster.ask(ANN).is_allowed
    await cluster.role("r")
    assert not cluster.ask(ANN).is_allowed
    await cluster.role("r", GET_PODS)
    await cluster.drop(roles.CLUSTER_BINDINGS, "r")
    assert not cluster.ask(ANN).is_allowed


async def test_a_user_of_very_many_groups(cluster: Cluster) -> None:
    await cluster.role("reader", GET_PODS)
    await cluster.bind("reader", ("Group", "g999"))
    crowd = User(name="ann", groups=tuple(f"g{number}" for number in range(1000)))
    assert cluster.ask(crowd).decision is Decision.ALLOWED
    await cluster.drop(roles.CLUSTER_BINDINGS, "reader")
    assert cluster.ask(crowd) == NO_OPINION


async def test_more_changes_than_are_remembered(cluster: Cluster) -> None:
    await cluster.role("r", GET_PODS)
    await cluster.bind("r", ("User", "ann"))
    assert cluster.ask(ANN).is_allowed
    await cluster.drop(roles.CLUSTER_BINDINGS, "r")
    for number in range(10):
        await cluster.role(f"r{number}", GET_PODS)
    assert not cluster.ask(ANN).is_allowed


async def test_the_rules_of_a_user(cluster: Cluster) -> None:
    await cluster.role("r", GET_PODS)
    await cluster.bind("r", ("User", "ann"), ("Group", "staff"))
    rules = cluster.rbac.rules(ANN, "lab")
    shown = '{APIGroups:[""], Resources:["pods"], Verbs:["get"]}'
    assert ([str(rule) for rule in rules.rules], rules.is_complete) == ([shown], True)
