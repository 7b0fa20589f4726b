"""Table layouts of kinds: columns, and the functions that fill them.

Records name their layouts; ``server.presentation.table`` makes the tables. Names, types and priorities of columns and
the descriptions of common columns are Kubernetes', because kubectl prints them. Other descriptions are ours.
Columns of priority 1 are shown by ``-o wide`` only.
"""

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any, Final, TypeAlias

import msgspec

from drachma.server.surface import age

Document: TypeAlias = dict[str, Any]
Cells: TypeAlias = list[Any]


class Column(msgspec.Struct, frozen=True):
    """A column, with the members of a Table's column definition in order."""

    name: str
    type: str = "string"
    format: str = ""
    description: str = ""
    priority: int = 0


_NAME: Final = (
    "Name must be unique within a namespace. Is required when creating resources, although some resources may allow a "
    "client to request the generation of an appropriate name automatically. Name is primarily intended for creation "
    "idempotence and configuration definition. Cannot be updated. More info: "
    "https://kubernetes.io/docs/concepts/overview/working-with-objects/names#names"
)
_CREATED: Final = (
    "CreationTimestamp is a timestamp representing the server time when this object was created. It is not guaranteed "
    "to be set in happens-before order across separate operations. Clients may not set this value. It is represented "
    "in RFC3339 form and is in UTC.\n\nPopulated by the system. Read-only. Null for lists. More info: "
    "https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#metadata"
)
NAME: Final = Column("Name", format="name", description=_NAME)
AGE: Final = Column("Age", description=_CREATED)


def text(name: str, description: str) -> Column:
    return Column(name, description=description)


def wide(name: str, description: str) -> Column:
    return Column(name, description=description, priority=1)


def integer(name: str, description: str) -> Column:
    return Column(name, "integer", description=description)


CONTAINERS: Final = (
    wide("Containers", "The names of the containers in the template."),
    wide("Images", "The images of the containers in the template."),
    wide("Selector", "The labels of the pods."),
)
"""Last columns of workloads with pod templates."""


def _no_conditions(_document: Document) -> Sequence[Document]:
    return ()


class Layout(msgspec.Struct, frozen=True):
    """Columns of a kind, and the function that returns a value for each from a document and the current time.

    ``conditions`` returns the conditions of a row, which tell clients that an object is done.
    """

    columns: tuple[Column, ...]
    cells: Callable[[Document, datetime], Cells]
    conditions: Callable[[Document], Sequence[Document]] = _no_conditions


def _plain_cells(document: Document, now: datetime) -> Cells:
    metadata = document.get("metadata") or {}
    return [str(metadata.get("name", "")), age.since(metadata.get("creationTimestamp"), now=now)]


PLAIN: Final = Layout((NAME, AGE), _plain_cells)
"""Name and age, for kinds without columns of their own."""


def _created_cells(document: Document, now: datetime) -> Cells:
    metadata = document.get("metadata") or {}
    return [str(metadata.get("name", "")), metadata.get("creationTimestamp")]


CREATED: Final = Layout(
    (NAME, Column("Created At", "date", description=_CREATED)),
    _created_cells,
)
"""Name and time of creation, for kinds without columns upstream."""
