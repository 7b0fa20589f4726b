"""``drachma node``: the agent of one node on its own, on any Kubernetes API server."""

import functools
import pathlib
import random
import socket
import urllib.parse
from typing import Annotated

import typer

from drachma import errors
from drachma.api import gates
from drachma.cli import options
from drachma.client import http
from drachma.node import localmachine
from drachma.node.directories import Directories
from drachma.node.endpoint import addresses
from drachma.node.runtimes.runtimename import RuntimeName
from drachma.process import logs, nodeagents, nodeidentity, standalone
from drachma.runtime import clock
from drachma.server.wire import serving


def node(
    root: Annotated[
        pathlib.Path, typer.Option(help="What the agent keeps, and where drivers register unless said otherwise.")
    ],
    name: Annotated[str, typer.Option(help="The node's name; this machine's by default.")] = "",
    kubeconfig: options.Kubeconfig = None,
    context: options.Context = "",
    bootstrap_kubeconfig: Annotated[
        pathlib.Path | None,
        typer.Option(
            help="With its token a certificate is got where that of --kubeconfig has ended, or there is none."
        ),
    ] = None,
    registry_dir: Annotated[
        pathlib.Path | None, typer.Option(help="Where drivers register; ROOT/plugins_registry.")
    ] = None,
    plugins_dir: Annotated[
        pathlib.Path | None, typer.Option(help="Where drivers have their own folders; ROOT/plugins.")
    ] = None,
    boot_id_file: Annotated[
        pathlib.Path, typer.Option(help="The file that says which boot of the machine this is.")
    ] = localmachine.BOOT_ID,
    cdi_dir: Annotated[
        list[pathlib.Path] | None,
        typer.Option(help="Where CDI files are, beside /etc/cdi and /var/run/cdi; may be repeated."),
    ] = None,
    runtime: options.ContainerRuntime = RuntimeName.SIMULATED,
    allow_unenforced_security: options.AllowUnenforcedSecurity = False,
    listen: Annotated[
        str,
        typer.Option(
            help="host:port where the API server finds logs and commands; port 0 takes any. By default any port of the "
            "address by which this machine reaches the API server; 0.0.0.0:0 is for all addresses."
        ),
    ] = "",
    client_ca_file: Annotated[
        pathlib.Path | None, typer.Option(help="Authorities of clients' certificates; the kubeconfig's by default.")
    ] = None,
    tls_cert_file: Annotated[
        pathlib.Path | None, typer.Option(help="Certificate to serve with; without one, one is made that signs itself.")
    ] = None,
    tls_private_key_file: Annotated[pathlib.Path | None, typer.Option(help="Its private key.")] = None,
    feature_gates: options.FeatureGates = "",
    metrics_port: options.MetricsPort = 0,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Say more about what is done.")] = False,
) -> None:
    """Run the agent of a node: register it, have drivers prepare claims, run the pods that are bound to it.

    The kubeconfig's user is to be system:node:NAME of the group system:nodes, by certificate or token; with
    --bootstrap-kubeconfig such a kubeconfig is made first, as a kubelet does it, and written anew before its
    certificate ends. Drivers are real
    ones, on unix sockets, as a kubelet has them. Containers are simulated, unless --runtime says otherwise.
    """
    logs.to_stderr("drachma.node", verbose=verbose)
    if (tls_cert_file is None) != (tls_private_key_file is None):
        raise errors.InvalidValueError("--tls-cert-file: goes with --tls-private-key-file, and the other way round")
    serving_files = (
        (tls_cert_file, tls_private_key_file)
        if tls_cert_file is not None and tls_private_key_file is not None
        else None
    )
    time = clock.SystemClock()
    own = name or socket.gethostname().lower()
    directories = Directories.below(root.absolute(), registry=registry_dir, plugins=plugins_dir)
    directories.make()
    machine = localmachine.describe(own, root=directories.root, boot_id_file=boot_id_file)
    if bootstrap_kubeconfig is not None:
        if kubeconfig is None:
            raise errors.InvalidValueError("--bootstrap-kubeconfig: goes with --kubeconfig, the file that is made")
        if not nodeidentity.is_usable(kubeconfig, now=time.utc()):
            nodeidentity.obtain(http.find_access(bootstrap_kubeconfig), own, file=kubeconfig)
    access = http.find_access(kubeconfig, context=context)
    renewal = None
    if bootstrap_kubeconfig is not None and kubeconfig is not None:
        renewal = nodeidentity.Renewal(access, own, file=kubeconfig, time=time, chance=random.Random())
    host, port = serving.Address.parse(listen) if listen else ("", 0)
    towards = urllib.parse.urlsplit(access.server).hostname or ""
    authority = client_ca_file.read_bytes() if client_ca_file is not None else access.certificate_authority or b""
    standalone.run(
        functools.partial(
            nodeagents.machine,
            described=machine,
            directories=directories,
            places=addresses.of_machine(own, host, port, towards=towards),
            served=nodeagents.Served(
                client_authority=authority,
                apiserver=access.server,
                root=directories.root,
                runtime=runtime,
                serving_files=serving_files,
                cdi=tuple(cdi_dir or ()),
                allows_unenforced_security=allow_unenforced_security,
            ),
        ),
        standalone.Options(
            access=access,
            manager="kubelet",
            gates=gates.Gates.parse(feature_gates),
            metrics_port=metrics_port,
            renewal=renewal,
        ),
    )
