"""Components with exactly the permissions that ``drachma manifests`` prints."""

import pathlib
from collections.abc import Iterable

from drachma import deployment
from tests.cluster import controlplane, objects
from tests.scenarios import wire

NAMESPACE = "drachma-system"
_PERMISSIONS = ("Namespace", "ServiceAccount", "ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding")


def install(
    plane: controlplane.ControlPlane, admin: wire.Wire, components: Iterable[deployment.Component]
) -> dict[str, pathlib.Path]:
    """Create the accounts of components with their permissions; return a kubeconfig by component."""
    chosen = list(components)
    settings = deployment.Settings(image="drachma:test", namespace=NAMESPACE)
    for each in chosen:
        if each.lease_namespace:
            admin.call("POST", "/api/v1/namespaces", {"metadata": {"name": each.lease_namespace}})
    for document in deployment.documents(chosen, settings):
        if document["kind"] in _PERMISSIONS:
            place = objects.path(document)
            answer = admin.call("POST", place, document)
            assert answer.code in (201, 409), answer.body
    result = {}
    for component in chosen:
        account = f"drachma-{component.name}"
        answer = admin.call("POST", f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts/{account}/token", {"spec": {}})
        assert answer.code == 201, answer.body
        result[component.name] = plane.write_kubeconfig(account, answer.body["status"]["token"])
    return result


def user(component: str) -> str:
    """Return the name that the API server knows a component by."""
    return f"system:serviceaccount:{NAMESPACE}:drachma-{component}"


def refusals(plane: controlplane.ControlPlane, component: str) -> set[str]:
    """Return the requests of a component that the API server did not allow."""
    return {
        f"{each['verb']} {each['requestURI']}"
        for each in plane.answers(user(component))
        if each.get("responseStatus", {}).get("code") in (401, 403)
    }
