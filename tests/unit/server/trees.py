"""A made-up kind to be served beside the others: its type refers to itself, and a type of it has a name of core."""

from datetime import datetime

from drachma.server.kinds.document import DocumentStrategy
from drachma.server.schema import metatypes, notation
from drachma.server.surface import cells, layout, resources, selectable
from drachma.server.surface.apisurface import Kind

GROUP = "forest.example.com"
PATH = f"/apis/{GROUP}/v1/namespaces/default/trees"

TYPES = notation.Types(
    "com.example.forest.v1",
    """\
Tree: apiVersion=str kind=str metadata=ObjectMeta! spec=PodSpec status=TreeStatus
PodSpec: branches={PodSpec:name}~ by=<PodSpec> height=int32 name=str* weight=Quantity
TreeStatus: leaves=int64
""",
    numbers="""\
Tree: metadata spec status
PodSpec: name height branches by weight
TreeStatus: leaves
""",
    uses=(metatypes.META,),
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
        schemas={"v1": TYPES.object("Tree")},
        layout=layout.Layout((layout.NAME, layout.integer("Branches", "How many."), layout.AGE), _cells),
        selectable=selectable.Selectable(fields=frozenset({selectable.NAME, selectable.NAMESPACE, "spec.name"})),
        strategy=DocumentStrategy,
    )
