"""``drachma logs``: the logs of a container, read from its node."""

import sys
from typing import Annotated

import typer

from drachma.cli import options


def logs(
    pod: Annotated[str, typer.Argument(help="Name of the pod.")],
    container: Annotated[
        str, typer.Option("-c", "--container", help="Name of the container, if the pod has several.")
    ] = "",
    namespace: Annotated[str, typer.Option("-n", "--namespace", help="Namespace of the pod.")] = "",
    follow: Annotated[bool, typer.Option("-f", "--follow", help="Follow the log until the container ends.")] = False,
    previous: Annotated[
        bool, typer.Option("-p", "--previous", help="Show the log of the previous run of the container.")
    ] = False,
    timestamps: Annotated[bool, typer.Option(help="Show the time of each line.")] = False,
    tail: Annotated[int | None, typer.Option(min=0, help="Number of lines to show from the end of the log.")] = None,
    since: Annotated[str, typer.Option(help="Show only lines newer than this, such as 5m or 90s.")] = "",
    kubeconfig: options.Kubeconfig = None,
    context: options.Context = "",
) -> None:
    """Show the logs of a container.

    The log of a simulated container lists the devices that the container got.
    """
    from drachma.client import http
    from drachma.process import eventloop
    from drachma.runtime import clock

    parameters = {
        "container": container,
        "follow": "true" if follow else "",
        "previous": "true" if previous else "",
        "timestamps": "true" if timestamps else "",
        "tailLines": "" if tail is None else str(tail),
        "sinceSeconds": str(max(1, round(options.seconds(since, name="--since")))) if since else "",
    }
    query = {name: value for name, value in parameters.items() if value}
    access = http.find_access(kubeconfig, context=context)

    async def show() -> None:
        async with http.HttpClient(access, clock=clock.SystemClock()) as client:
            async for piece in client.read_log(namespace or access.namespace or "default", pod, query=query):
                sys.stdout.buffer.write(piece)
                sys.stdout.buffer.flush()

    with eventloop.runner() as runner:
        runner.run(show())
