"""Builders for tests of policies: what is registered, and who is asked."""

from typing import Any

from tests.unit.server import client

GROUP = "admissionregistration.k8s.io"
CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
MERGE = "application/merge-patch+json"


def rule(*resources: str, groups: tuple[str, ...] = ("",), **changes: Any) -> dict[str, Any]:
    """A rule about everything that is done to resources."""
    return {"apiGroups": groups, "apiVersions": ["*"], "operations": ["*"], "resources": resources, **changes}


def config_map(name: str = "c", *, labels: dict[str, str] | None = None, **data: str) -> dict[str, Any]:
    metadata = {"name": name, "labels": labels or {}}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


async def register(server: client.Client, plural: str, kind: str, name: str, **content: Any) -> None:
    """Something that registers admission; it must be taken."""
    body = {"apiVersion": f"{GROUP}/v1", "kind": kind, "metadata": {"name": name}, **content}
    answer = await server.call("POST", f"/apis/{GROUP}/v1/{plural}", body)
    assert answer.code == 201, answer.body


async def validating(server: client.Client, name: str = "p", *, rules: Any = None, **spec: Any) -> None:
    """A validating policy, by default about config maps."""
    constraints = {"resourceRules": rules or [rule("configmaps")], **spec.pop("matching", {})}
    whole = {"matchConstraints": constraints, **spec}
    await register(server, "validatingadmissionpolicies", "ValidatingAdmissionPolicy", name, spec=whole)


async def bind(server: client.Client, policy: str = "p", *, name: str = "b", **spec: Any) -> None:
    """A binding that denies, unless it says otherwise."""
    whole = {"policyName": policy, "validationActions": ["Deny"], **spec}
    await register(server, "validatingadmissionpolicybindings", "ValidatingAdmissionPolicyBinding", name, spec=whole)
