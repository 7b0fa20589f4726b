"""``drachma top``: usage of nodes and pods, as their nodes report it, and a live grid of devices."""

from typing import Annotated

import typer

from drachma.cli import options

app = typer.Typer(
    help="Show the usage of nodes, pods and devices.",
    pretty_exceptions_enable=False,
    add_completion=False,
    no_args_is_help=True,
)


@app.command()
def devices(
    driver: Annotated[str, typer.Option(help="Show only devices of this driver.")] = "",
    once: Annotated[bool, typer.Option("--once", help="Print the grid once, and return.")] = False,
    kubeconfig: options.Kubeconfig = None,
    context: options.Context = "",
) -> None:
    """Show a grid of nodes and devices; on a terminal it is drawn again whenever it changes.

    A device has one mark. If the terminal is too small for that, a node has one mark for all its devices.
    """
    from drachma.cli import devicegrids

    devicegrids.show(kubeconfig, context, driver=driver, once=once)


@app.command()
def nodes(kubeconfig: options.Kubeconfig = None, context: options.Context = "") -> None:
    """Show the usage of each node, and its share of the node's allocatable resources."""
    from drachma.cli import usagetables

    usagetables.print_nodes(kubeconfig, context)


@app.command()
def pods(
    namespace: Annotated[
        str, typer.Option("-n", "--namespace", help="Namespace of the pods; all namespaces by default.")
    ] = "",
    selector: Annotated[str, typer.Option("-l", "--selector", help="Label selector of the pods.")] = "",
    kubeconfig: options.Kubeconfig = None,
    context: options.Context = "",
) -> None:
    """Show the usage of each pod, summed over its containers."""
    from drachma.cli import usagetables

    usagetables.print_pods(kubeconfig, context, namespace=namespace, selector=selector)
