"""``drachma top``: resource usage of nodes and pods, as their nodes report it."""

from typing import Annotated

import typer

from drachma.cli import options

app = typer.Typer(
    help="Show the resource usage of nodes and pods.", pretty_exceptions_enable=False, add_completion=False
)


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
