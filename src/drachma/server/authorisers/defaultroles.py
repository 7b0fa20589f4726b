"""Default roles and bindings, read from ``defaultroles.txt``, which describes its notation.

``server.bootstrap`` stores them when an application starts. The node authoriser takes its rules from them.
"""

import importlib.resources
from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple, TypeAlias

from drachma.server.access import policyrules
from drachma.server.access.policyrules import Rule
from drachma.validation import rbac

Document: TypeAlias = dict[str, Any]

AUTOUPDATE: Final = "rbac.authorization.kubernetes.io/autoupdate"
"""Annotation of objects that every start of a server updates, unless its value is "false"."""

_API_VERSION: Final = f"{rbac.GROUP}/v1"
_AGGREGATE: Final = "rbac.authorization.k8s.io/aggregate-to-"
_CONTROLLER: Final = "system:controller:"
_VERBS: Final = {"read": "get,list,watch", "write": "create,delete,deletecollection,patch,update"}
_SUBJECTS: Final = {"user": "User", "group": "Group"}


class Defaults(NamedTuple):
    """Roles and bindings as documents, in the order of the file."""

    roles: tuple[Document, ...]
    bindings: tuple[Document, ...]

    def rules(self, name: str) -> tuple[Rule, ...]:
        """Return the rules of a cluster role; KeyError if there is none of that name."""
        for role in self.roles:
            if role["metadata"]["name"] == name and role["kind"] == "ClusterRole":
                return policyrules.read(role["rules"])
        raise KeyError(name)


def read(more: str = "") -> Defaults:
    """Return all default roles and bindings, and more in the same notation."""
    text = (importlib.resources.files(__package__) / "defaultroles.txt").read_text(encoding="utf-8")
    roles: list[Document] = []
    bindings: list[Document] = []
    for line in (*text.splitlines(), *more.splitlines()):
        match line.split():
            case [] | ["#", *_]:
                continue
            case ["role", place, *rest]:
                role = _role(place, rest)
                roles.append(role)
                bindings.extend(_controller_binding(role))
            case ["binding", place, *rest]:
                bindings.append(_binding(place, rest))
            case words:
                roles[-1]["rules"].append(policyrules.write(_rule(words)))
    return Defaults(tuple(roles), tuple(bindings))


def _role(place: str, words: Sequence[str]) -> Document:
    namespace, name = _place(place)
    role = _object("Role" if namespace else "ClusterRole", namespace, name)
    if words[:1] == ["in"]:
        role["metadata"]["labels"][f"{_AGGREGATE}{words[1]}"] = "true"
    role["rules"] = []
    if words[-1:] == ["aggregated"]:
        role["aggregationRule"] = {"clusterRoleSelectors": [{"matchLabels": {f"{_AGGREGATE}{name}": "true"}}]}
    return role


def _rule(words: Sequence[str]) -> Rule:
    verbs = tuple(_VERBS.get(words[0], words[0]).split(","))
    if words[1] == "at":
        return Rule(verbs=verbs, paths=tuple(words[2:]))
    groups = tuple("" if group == "core" else group for group in words[1].removesuffix(":").split(","))
    end = words.index("named") if "named" in words else len(words)
    return Rule(verbs=verbs, groups=groups, resources=tuple(words[2:end]), names=tuple(words[end + 1 :]))


def _controller_binding(role: Document) -> Iterator[Document]:
    name = role["metadata"]["name"]
    if role["kind"] == "ClusterRole" and name.startswith(_CONTROLLER):
        yield _binding(name, ["to", f"account:kube-system/{name.removeprefix(_CONTROLLER)}"])


def _binding(place: str, words: Sequence[str]) -> Document:
    namespace, name = _place(place)
    role = name
    if words[:1] == ["of"]:
        role, words = words[1], words[2:]
    binding = _object("RoleBinding" if namespace else "ClusterRoleBinding", namespace, name)
    kind = "Role" if namespace else "ClusterRole"
    binding["roleRef"] = {"apiGroup": rbac.GROUP, "kind": kind, "name": role}
    binding["subjects"] = [_subject(each) for each in words[1:]]
    return binding


def _subject(text: str) -> Document:
    kind, _, name = text.partition(":")
    if kind == "account":
        namespace, name = _place(name)
        return {"kind": "ServiceAccount", "name": name, "namespace": namespace}
    return {"kind": _SUBJECTS[kind], "apiGroup": rbac.GROUP, "name": name}


def _place(text: str) -> tuple[str, str]:
    namespace, _, name = text.rpartition("/")
    return namespace, name


def _object(kind: str, namespace: str, name: str) -> Document:
    metadata: Document = {
        "name": name,
        "labels": {"kubernetes.io/bootstrapping": "rbac-defaults"},
        "annotations": {AUTOUPDATE: "true"},
    }
    if namespace:
        metadata["namespace"] = namespace
    return {"apiVersion": _API_VERSION, "kind": kind, "metadata": metadata}
