"""``drachma plan --defragment``: moves of pods that bring back whole nodes or devices, as text, document and action."""

from __future__ import annotations

import asyncio
import pathlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import typer

from drachma.cli import clusters, options
from drachma.client import connect

if TYPE_CHECKING:
    from drachma.scheduler.settings import Settings
    from drachma.simulate import Simulation
    from drachma.simulate.defragmentation import Goal, Move, Plan


def show(cluster: Simulation, goal: Goal, *, count: int | None, driver: str, output: options.Format | None) -> Plan:
    """Print the plan for a cluster, and return it."""
    from drachma.simulate.defragmentation import Planner

    plan = Planner(cluster, goal, driver=driver).plan(count)
    clusters.write(_document(plan), _lines(plan), output)
    return plan


def carry_out(
    plan: Plan, settings: Settings, *, kubeconfig: pathlib.Path | None, context: str, patience: float
) -> None:
    """Make the moves of a plan in a running cluster. Exit with code 1 at the first surprise."""
    from drachma.runtime import clock
    from drachma.simulate.defragmentation import Carrier, SurpriseError

    async def run() -> None:
        async with connect(kubeconfig, context=context) as client:
            carrier = Carrier(
                client,
                clock=clock.SystemClock(),
                settings=settings,
                patience=patience,
                report=lambda line: typer.echo(line, err=True),
            )
            await carrier.carry_out(plan)

    try:
        asyncio.run(run())
    except SurpriseError as error:
        typer.echo(f"drachma: stopped: {error}", err=True)
        raise typer.Exit(1) from None
    typer.echo(f"{len(plan.moves)} of {len(plan.moves)} moves are made", err=True)


def _document(plan: Plan) -> dict[str, Any]:
    return {
        "goal": plan.goal.value,
        "broughtBack": [each.key for each in plan.brought_back],
        "wholeBefore": len(plan.free),
        "wholeAfter": len(plan.free) + len(plan.brought_back),
        "fewest": plan.is_fewest,
        "moves": [_move_document(each) for each in plan.moves],
        "kept": {each.whole.key: each.reason for each in plan.kept},
    }


def _move_document(move: Move) -> dict[str, Any]:
    return {
        "pod": f"{move.pod.metadata.namespace}/{move.pod.metadata.name}",
        "from": {"node": move.origin, "devices": list(map(str, move.released))},
        "to": {"node": move.target, "devices": list(map(str, move.allocated))},
        "gain": move.gain,
    }


def _lines(plan: Plan) -> Iterator[str]:
    for number, move in enumerate(plan.moves, start=1):
        title = f"{move.pod.metadata.namespace}/{move.pod.metadata.name}"
        yield f"{number}. move pod {title} from {_place(move.origin, move.released)} to " + _place(
            move.target, move.allocated
        )
        yield f"   {move.gain}"
    for busy_node in plan.kept:
        yield f"{busy_node.whole.title} stays in use: {busy_node.reason}"
    before, more = len(plan.free), len(plan.brought_back)
    total = before + more + len(plan.kept)
    proof = "" if plan.is_fewest else "; there may be a better plan, the search ended at its limit"
    moves = f"{len(plan.moves)} move{'' if len(plan.moves) == 1 else 's'}"
    yield f"{before + more} of {total} {plan.goal} would be whole instead of {before}, with {moves}{proof}"


def _place(node: str, devices: tuple[Any, ...]) -> str:
    return f"{node} ({', '.join(each.device for each in devices)})"
