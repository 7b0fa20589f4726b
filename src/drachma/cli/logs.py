"""``drachma logs``: what a container of a pod writes, from its node."""

import sys
from typing import Annotated

import typer

from drachma.cli import options
from drachma.client import http
from drachma.process import eventloop
from drachma.runtime import clock


def logs(
    pod: Annotated[str, typer.Argument(help="The name of the pod.")],
    container: Annotated[str, typer.Option("-c", "--container", help="Which one, where there are several.")] = "",
    namespace: Annotated[str, typer.Option("-n", "--namespace", help="The namespace of the pod.")] = "",
    follow: Annotated[bool, typer.Option("-f", "--follow", help="Stay until the container has ended.")] = False,
    previous: Annotated[bool, typer.Option("-p", "--previous", help="Of the run before this one.")] = False,
    timestamps: Annotated[bool, typer.Option(help="With the time of each line.")] = False,
    tail: Annotated[int | None, typer.Option(min=0, help="The last so many lines.")] = None,
    since: Annotated[str, typer.Option(help="Not older than this, such as 5m or 90s.")] = "",
    kubeconfig: options.Kubeconfig = None,
    context: options.Context = "",
) -> None:
    """Show what a container of a pod writes.

    One that is only simulated says which devices it was given.
    """
    query = {
        "container": container,
        "follow": "true" if follow else "",
        "previous": "true" if previous else "",
        "timestamps": "true" if timestamps else "",
        "tailLines": "" if tail is None else str(tail),
        "sinceSeconds": str(max(1, round(options.seconds(since, name="--since")))) if since else "",
    }
    access = http.find_access(kubeconfig, context=context)

    async def show() -> None:
        async with http.HttpClient(access, time=clock.SystemClock()) as client:
            wanted = {name: value for name, value in query.items() if value}
            async for piece in client.read_log(namespace or access.namespace or "default", pod, query=wanted):
                sys.stdout.buffer.write(piece)
                sys.stdout.buffer.flush()

    with eventloop.runner() as runner:
        runner.run(show())
