"""``drachma validate``: manifests by the API server's own code, without a server."""

import asyncio
from datetime import UTC, datetime
from typing import Annotated

import typer

from drachma import errors
from drachma.api import gates
from drachma.offline import manifestfiles
from drachma.server.pipeline import verdict
from drachma.validation import refusal


def validate(
    file: Annotated[list[str], typer.Option("-f", "--filename", help="A file, a folder, or - for standard input.")],
    feature_gates: Annotated[
        str, typer.Option(help="Features to switch, such as DRAConsumableCapacity=false,DRAAdminAccess=false.")
    ] = "",
) -> None:
    """Check manifests of any kind that drachma serves as its server would when they are created.

    Shows the server's messages and warnings. Objects without a namespace go to "default". What depends on the rest of
    a cluster is not judged: whether namespaces, priority classes or runtime classes exist, and what nodes can do. Admin
    access is only judged where the manifests hold the Namespace.
    """
    switched = gates.Gates.parse(feature_gates)
    judge = verdict.Judge(gates=switched, clock=lambda: datetime.now(UTC))
    if not asyncio.run(_judge_all(judge, list(manifestfiles.read(file)))):
        raise typer.Exit(1)


async def _judge_all(judge: verdict.Judge, sources: list[manifestfiles.Source | manifestfiles.Unreadable]) -> bool:
    """Whether a server would take all of them; shows what it would say about each."""
    await judge.assume(source.content for source in sources if isinstance(source, manifestfiles.Source))
    is_good = True
    for source in sources:
        problem = await _problem(judge, source)
        if problem:
            typer.echo(f"drachma: {problem}", err=True)
            is_good = False
    return is_good


async def _problem(judge: verdict.Judge, source: manifestfiles.Source | manifestfiles.Unreadable) -> str:
    """What a server would say against an object, or nothing; then shows that it is good."""
    if isinstance(source, manifestfiles.Unreadable):
        return str(source)
    try:
        said = await judge.judge(source.content)
    except errors.DecodeError as error:
        return f"{source.place}: {error}"
    for warning in said.warnings:
        typer.echo(f"drachma: {source.place}: warning: {warning}", err=True)
    if said.refusal is not None:
        return f"{source.place}: {said.refusal['message']}"
    title = refusal.qualified(said.resource.singular, said.resource.group)
    typer.echo(f"{title}/{said.name} is valid")
    return ""
