"""A made-up kind to serve in addition to the others: its type refers to itself, and to a type with a name of core."""

from datetime import datetime

from drachma.server.kinds.document import DocumentStrategy
from drachma.server.surface import cells, layout, resources, selectable
from drachma.server.surface.apisurface import Kind
from tests.unit import typefiles

GROUP = "forest.example.com"
PATH = f"/apis/{GROUP}/v1/namespaces/default/trees"

_TYPES = typefiles.load(
    GROUP,
    {
        "Tree": {
            "apiVersion": "string",
            "kind": "string",
            "metadata": {"type": "meta/v1.ObjectMeta", "always": True, "number": 1},
            "spec": {"type": "PodSpec", "number": 2},
            "status": {"type": "TreeStatus", "number": 3},
        },
        "PodSpec": {
            "branches": {"type": "[]PodSpec", "list": "map", "keys": ["name"], "patch": "merge", "number": 3},
            "by": {"type": "map[string]PodSpec", "number": 4},
            "height": {"type": "int32", "number": 2},
            "name": {"type": "string", "required": True, "number": 1},
            "weight": {"type": "Quantity", "number": 5},
        },
        "TreeStatus": {"leaves": {"type": "int64", "number": 1}},
    },
    package="com.example.forest.v1",
)


def _cells(tree: layout.Document, now: datetime) -> layout.Cells:
    return [cells.name(tree), len(cells.part(tree, "spec").get("branches") or []), cells.since_creation(tree, now)]


def kind(*, plural: str = "trees", name: str = "Tree", group: str = GROUP) -> Kind:
    """A new record every time, as every definition of a custom resource would be one."""
    return Kind(
        group=group,
        versions=("v1",),
        plural=plural,
        kind=name,
        namespaced=True,
        short_names=("tr",),
        subresources=(resources.status(),),
        defined_schemas={"v1": _TYPES.get(f"{GROUP}/v1.Tree")},
        layout=layout.Layout((layout.NAME, layout.integer("Branches", "How many."), layout.AGE), _cells),
        selectable=selectable.Selectable(fields=frozenset({selectable.NAME, selectable.NAMESPACE, "spec.name"})),
        strategy=DocumentStrategy,
    )
