"""Type files that tests write themselves, next to those of the package."""

from collections.abc import Mapping
from typing import Any

from drachma.api import types
from drachma.api.types import loader


def load(
    group: str,
    fields: Mapping[str, Mapping[str, Any]],
    *,
    package: str = "com.example.v1",
    overlay: Mapping[str, Any] | None = None,
    rules: Mapping[str, Any] | None = None,
) -> loader.Loader:
    """Return a loader of the package's groups and of one more, which has one version ``v1``.

    Args:
        group: the name of the additional group.
        fields: the fields of its types, by name: records as type files have them, or just a type expression.
        package: the prefix of the types' names in OpenAPI documents.
        overlay: the group's file in the folder of that name.
        rules: the group's file in the folder of that name.
    """
    records = {
        name: {"fields": {field: _record(facts) for field, facts in own.items()}} for name, own in fields.items()
    }
    files: dict[str, Any] = {
        f"kubernetes/{group}.json": {"v1": {"package": package, "types": records}},
        f"overlay/{group}.json": overlay or {},
        f"rules/{group}.json": rules or {},
    }
    return _Loader(lambda path: files.get(path, {}), group=group)


class _Loader(loader.Loader):
    """The types of one group of a test, and those of the package."""

    def __init__(self, read: loader.ReadFile, *, group: str) -> None:
        super().__init__(read)
        self._prefix = f"{group}/"

    def get(self, reference: str) -> types.Object:
        return super().get(reference) if reference.startswith(self._prefix) else types.get(reference)


def _record(facts: Any) -> dict[str, Any]:
    return {"type": facts} if isinstance(facts, str) else dict(facts)
