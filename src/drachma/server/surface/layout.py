"""How a kind is shown in tables: its columns, and what fills them.

A record says it of its kind; ``server.presentation.table`` draws the tables. Names, types and priorities of columns are
Kubernetes', since kubectl prints them, and so are the descriptions that all kinds have in common; others are ours.
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
    """One column, with the members that a Table writes, in their order."""

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
    wide("Selector", "Which pods belong to the object."),
)
"""The last columns of what runs pods from a template."""


def _no_conditions(_document: Document) -> Sequence[Document]:
    return ()


class Layout(msgspec.Struct, frozen=True):
    """The columns of a kind and the function that fills them: a document and the time it is give a value for each.

    ``conditions`` gives those of a document's row, by which clients tell rows that are done with.
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
"""Name and time of creation, which upstream shows of kinds that it has no columns for."""
