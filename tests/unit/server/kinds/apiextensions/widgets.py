"""A definition of widgets, for tests that need a custom resource."""

from typing import Any

GROUP = "toys.example.com"
TYPE = {"apiVersion": f"{GROUP}/v1", "kind": "Widget"}
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
DEFINITION = f"{DEFINITIONS}/widgets.{GROUP}"
MERGE = "application/merge-patch+json"
APPLY = "application/apply-patch+yaml"
TABLE = {"accept": "application/json;as=Table;v=v1;g=meta.k8s.io"}
FREE = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}


def path(version: str = "v1") -> str:
    return f"/apis/{GROUP}/{version}/namespaces/default/widgets"


def version(name: str = "v1", *, spec: Any = None, storage: bool = True, **more: Any) -> dict[str, Any]:
    parts = {"spec": FREE if spec is None else spec}
    if "status" in more.get("subresources", {}):
        parts["status"] = FREE
    schema = {"type": "object", "properties": parts}
    return {"name": name, "served": True, "storage": storage, "schema": {"openAPIV3Schema": schema}, **more}


def definition(*versions: dict[str, Any], **spec: Any) -> dict[str, Any]:
    names = {"plural": "widgets", "kind": "Widget", **spec.pop("names", {})}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"widgets.{GROUP}"},
        "spec": {
            "group": GROUP,
            "scope": "Namespaced",
            "names": names,
            "versions": list(versions) or [version()],
            **spec,
        },
    }


def fields(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


def widget(name: str = "w", *, version: str = "v1", **spec: Any) -> dict[str, Any]:
    return {"apiVersion": f"{GROUP}/{version}", "kind": "Widget", "metadata": {"name": name}, "spec": spec}
