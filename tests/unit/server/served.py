"""The kinds that every application serves, for tests that are about one of them."""

from drachma.api import gates as feature
from drachma.api.types import model
from drachma.server.kinds import builtin
from drachma.server.surface import apisurface, resources
from drachma.server.surface.strategy import Environment
from drachma.store import memory, protocol

CATALOG = resources.Catalog(builtin.KINDS)


def resource(plural: str, *, group: str = "", version: str = "v1") -> resources.Resource:
    """The resource of that name."""
    found = CATALOG.find(group, version, plural=plural)
    assert found is not None, plural
    return found


def schema(api_version: str, kind: str) -> model.Object:
    """The type of a kind in a version."""
    found = CATALOG.find_kind(api_version, kind)
    assert found is not None, kind
    return found.schema(api_version.rpartition("/")[2])


def surface(store: protocol.Store | None = None) -> apisurface.ApiSurface:
    """The surface of an application."""
    environment = Environment(gates=feature.ALL, store=store or memory.MemoryStore())
    return apisurface.ApiSurface(builtin.KINDS, environment=environment)
