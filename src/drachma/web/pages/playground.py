"""The playground of CEL: devices that an expression matches, its cost, and its errors at their place."""

from __future__ import annotations

import asyncio
import re
from typing import Any, Final

from starlette.responses import JSONResponse, Response

from drachma import cel
from drachma.api import resourceslice
from drachma.cel import program as programs
from drachma.claims import identity
from drachma.web import rendering, rows
from drachma.web.page import Page

_MOST_EXPRESSION: Final = 10 * 1024
_MOST_SHOWN: Final = 100
_MOST_EVALUATED: Final = 100_000
"""Limit for devices that an expression is evaluated on."""

_POSITION: Final = re.compile(r"ERROR: <input>:(\d+):(\d+): (.*)")


async def show(page: Page) -> Response:
    """Return the playground. It works without script: the form sends the expression."""
    query = page.query("expression")
    expression = query.text("expression", most=_MOST_EXPRESSION)
    result = await _evaluate(page, expression) if expression else None
    return page.render(
        "playground.html",
        topics="devices",
        expression=expression,
        result=result,
        completions=_completions(page),
        refusals=[text for kind in (resourceslice.ResourceSlice,) if (text := page.view.refusal(kind))],
    )


async def evaluate(page: Page) -> Response:
    """Return the result of an expression as JSON, for every keystroke."""
    query = page.query("expression")
    return JSONResponse(await _evaluate(page, query.text("expression", most=_MOST_EXPRESSION)))


def _completions(page: Page) -> list[dict[str, str]]:
    """Return the attributes and capacities of all devices as CEL writes them, with an example of a value."""
    listed: dict[str, str] = {"device.driver": ""}
    for pool in page.view.model.pools.values():
        driver = pool.id.driver
        for each in pool.slices:
            for device in each.spec.devices[:8]:
                for name, value in device.attributes.items():
                    listed.setdefault(_path("attributes", name, driver), rows.attribute_text(value))
                for name, capacity in device.capacity.items():
                    listed.setdefault(_path("capacity", name, driver), str(capacity.value))
    return [{"path": path, "example": example} for path, example in sorted(listed.items())]


def _path(field: str, name: str, driver: str) -> str:
    domain, slash, short = name.partition("/")
    return f'device.{field}["{domain}"].{short}' if slash else f'device.{field}["{driver}"].{name}'


async def _evaluate(page: Page, expression: str) -> dict[str, Any]:
    if not expression.strip():
        return {"state": "empty"}
    try:
        program = await asyncio.to_thread(_compile, expression)
    except cel.CompilationError as error:
        issues = [
            {"line": int(match[1]), "column": int(match[2]), "message": rendering.visible(match[3])}
            for match in _POSITION.finditer(str(error))
        ]
        message = rendering.visible(str(error))
        return {"state": "error", "message": message, "issues": issues}
    published = [
        (identity.DeviceID(*pool.id, device.name), device)
        for pool in page.view.model.pools.values()
        for each in pool.slices
        for device in each.spec.devices
    ]
    result = await asyncio.to_thread(_match, program, published)
    identifiers = {match["id"] for match in result["matches"]}
    nodes = {text: cell.node for cell in page.view.model.cells if (text := str(cell.id)) in identifiers}
    for match in result["matches"]:
        match["node"] = nodes.get(match["id"], "")
    return result


def _compile(expression: str) -> cel.Program:
    # A new expression, with all features of this version: the API server may have some of them off.
    environment = cel.device_environment(consumable_capacity=True, list_type_attributes=True)
    return cel.compile_expression(expression, environment)


def _match(program: cel.Program, published: list[tuple[identity.DeviceID, resourceslice.Device]]) -> dict[str, Any]:
    """Evaluate a program on devices. Costs some microseconds for each."""
    matches: list[dict[str, str]] = []
    count, failures, cost = 0, 0, 0
    failure = ""
    for device_id, device in published[:_MOST_EVALUATED]:
        outcome = program.evaluate(cel.Device.of(device, device_id.driver))
        cost = max(cost, outcome.cost or 0)
        if outcome.error is not None:
            failures += 1
            failure = failure or f"{device_id}: {outcome.error}"
        elif outcome.match:
            count += 1
            if len(matches) < _MOST_SHOWN:
                matches.append(
                    {
                        "id": str(device_id),
                        "device": rendering.visible(device_id.device),
                        "pool": rendering.visible(device_id.pool),
                        "driver": device_id.driver,
                        "model": rendering.visible(rows.model_of(device)),
                        "link": rendering.device_href(device_id),
                    }
                )
    return {
        "state": "ok",
        "type": str(program.result),
        "count": count,
        "devices": len(published),
        "matches": matches,
        "failures": failures,
        "failure": rendering.visible(failure),
        "cost": cost,
        "max_cost": program.max_cost,
        "limit": programs.COST_LIMIT,
        "is_cut": len(published) > _MOST_EVALUATED,
    }
