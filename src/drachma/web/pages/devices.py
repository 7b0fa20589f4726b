"""Devices: the map, the table of nodes, and the page of one device."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from starlette.responses import Response

from drachma import errors
from drachma.api import node, resourceslice
from drachma.claims import identity
from drachma.web import models, paging, rows
from drachma.web.models import Model
from drachma.web.page import Page
from drachma.web.rows import DeviceCell, DeviceState

COLOURS: Final = ("state", "team", "pod", "class", "model", "health")
_VIEWS: Final = ("map", "table")
_MOST_CELLS: Final = 96
"""Devices of a node that its row shows."""


class NodeRow(NamedTuple):
    """A node with its devices."""

    name: str
    is_known: bool
    is_ready: bool
    cells: list[DeviceCell]
    used: int

    @property
    def units(self) -> list[list[DeviceCell]]:
        """Devices to show: each alone, or the partitions of one physical device together."""
        groups: dict[tuple[str, ...], list[DeviceCell]] = {}
        for cell in self.cells[:_MOST_CELLS]:
            key = (cell.id.driver, cell.id.pool, cell.group) if cell.group else tuple(cell.id)
            groups.setdefault(key, []).append(cell)
        return list(groups.values())

    @property
    def hidden(self) -> int:
        """Devices that are not shown."""
        return max(len(self.cells) - _MOST_CELLS, 0)


async def show(page: Page) -> Response:
    """Return the map or the table of all devices."""
    query = page.query("view", "colour", "q", "state", "page")
    mode = query.choice("view", _VIEWS, "map")
    query.number("page", default=1)
    model = page.view.model
    counts = model.count_states()
    context: dict[str, Any] = {
        "mode": mode,
        "colour": query.choice("colour", COLOURS, "state"),
        "colours": COLOURS,
        "states": [(state, counts[state]) for state in DeviceState],
        "total": sum(counts.values()),
        "used": models.used(counts),
        "search": query.text("q", most=300),
        "state": query.choice("state", [each.value for each in DeviceState]),
        "map_link": query.link("/devices", view="", page=""),
        "table_link": query.link("/devices", view="table"),
        "refusals": [text for kind in (resourceslice.ResourceSlice, node.Node) if (text := page.view.refusal(kind))],
    }
    if mode == "table":
        search = context["search"].lower()
        part = paging.cut(_nodes(model, search, context["state"]), query, "/devices")
        context["part"] = part._replace(rows=[_row(model, name, search, context["state"]) for name in part.rows])
    return page.render("devices.html", topics="devices nodes access", **context)


def _nodes(model: Model, search: str, state: str) -> list[str]:
    """Return the names of nodes that match, with "" for devices of several nodes first."""
    model.refresh()
    names = sorted(
        name for name in {*model.nodes, *model.node_versions} if name in model.nodes or model.has_cells(name)
    )
    if not search and not state:
        return names
    return [name for name in names if _cells(model, name, search, state) or (not state and search in name.lower())]


def _cells(model: Model, name: str, search: str, state: str) -> list[DeviceCell]:
    """Return the devices of a node that match; if its name matches, all of them in the state."""
    is_named = search in name.lower()
    return [
        cell
        for cell in model.cells_of(name)
        if (not state or cell.state == state) and (is_named or search in _text(cell))
    ]


def _row(model: Model, name: str, search: str, state: str) -> NodeRow:
    cells = _cells(model, name, search, state)
    node_row = model.nodes.get(name)
    used = sum(cell.state in (DeviceState.USED, DeviceState.SHARED, DeviceState.RESERVED) for cell in cells)
    return NodeRow(name, node_row is not None, node_row is not None and models.is_ready(node_row), cells, used)


def _text(cell: DeviceCell) -> str:
    parts = (*cell.id, cell.model, cell.problem, *map(str, cell.pods), *map(str, cell.claims), *cell.classes)
    return " ".join(parts).lower()


async def show_map(page: Page) -> Response:
    """Return the tiles of the map that changed since the version that the browser has."""
    query = page.query("generation", "since")
    view = page.view
    generation = query.number("generation", default=0, least=0, most=10**9)
    since = query.number("since", default=0, least=0, most=10**11)
    content = view.device_map.encode(generation=view.generation, since=since if generation == view.generation else -1)
    return Response(content, media_type="application/json")


class Amount(NamedTuple):
    """A capacity or counter, and the used share of it."""

    name: str
    value: str
    used: str
    share: float


async def show_device(page: Page) -> Response:
    """Return the page of one device."""
    query = page.query("driver", "pool", "name")
    device_id = identity.DeviceID(query.text("driver"), query.text("pool"), query.text("name"))
    model = page.view.model
    cell, published = model.cell(device_id), model.published(device_id)
    if cell is None or published is None:
        raise errors.ObjectNotFoundError({"message": f"device {device_id}: is not published, or you may not read it"})
    siblings = [
        each
        for each in model.pools[identity.PoolID(device_id.driver, device_id.pool)].cells
        if cell.group and each.group == cell.group
    ]
    return page.render(
        "device.html",
        topics="devices claims access",
        cell=cell,
        attributes=[(name, rows.attribute_text(value)) for name, value in sorted(published.attributes.items())],
        capacities=_capacities(published, [use.result.consumed_capacity for use in model.uses(device_id)]),
        counters=_counters(model, device_id, cell.group),
        taints=[f"{each.key}={each.value or ''}:{each.effect}" for each in published.taints],
        uses=model.uses(device_id),
        siblings=siblings,
        is_shared=bool(published.allow_multiple_allocations),
    )


def _capacities(published: resourceslice.Device, consumed: list[Any]) -> list[Amount]:
    amounts = []
    for name, capacity in sorted(published.capacity.items()):
        limit = capacity.value
        used = sum(each[name].nanos for each in consumed if name in each)
        share = used / limit.nanos if limit is not None and limit.nanos else 0.0
        amounts.append(Amount(name, str(limit), _amount(used) if used else "", min(share, 1.0)))
    return amounts


def _counters(model: Model, device: identity.DeviceID, group: str) -> list[Amount]:
    """Return the counters that the partitions of a physical device share, with the amounts that are drawn."""
    pool = model.pools[identity.PoolID(device.driver, device.pool)]
    limits = {
        name: counter.value.nanos if counter.value is not None else 0
        for each in pool.slices
        for counter_set in each.spec.shared_counters
        if counter_set.name == group
        for name, counter in counter_set.counters.items()
    }
    drawn = dict.fromkeys(limits, 0)
    for each in pool.slices:
        for member in each.spec.devices:
            if not model.uses(identity.DeviceID(device.driver, device.pool, member.name)):
                continue
            for draw in member.consumes_counters:
                for name, counter in draw.counters.items() if draw.counter_set == group else ():
                    drawn[name] = drawn.get(name, 0) + (counter.value.nanos if counter.value is not None else 0)
    return [
        Amount(name, _amount(limit), _amount(drawn[name]), _share(drawn[name], limit))
        for name, limit in sorted(limits.items())
    ]


def _share(drawn: int, limit: int) -> float:
    return 1.0 if drawn >= limit > 0 else drawn / limit if limit else 0.0


_MOST_EXACT: Final = 2**53
"""Largest number whose fraction is shown."""


def _amount(nanos: int) -> str:
    units = nanos // 10**9
    for unit, size in (("Ti", 2**40), ("Gi", 2**30), ("Mi", 2**20), ("Ki", 2**10)):
        if units and units % size == 0:
            return f"{units // size}{unit}"
    if nanos % 10**9 == 0 or units > _MOST_EXACT:
        return str(units)
    return f"{nanos / 10**9:g}"
