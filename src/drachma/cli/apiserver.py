"""``drachma apiserver``: the Kubernetes API on a data directory, for kubectl and every other client."""

from drachma.cli import serveroptions


@serveroptions.expand
def apiserver(
    server: serveroptions.ServerOptions, store: serveroptions.StoreOptions, limits: serveroptions.LimitOptions
) -> None:
    """Serve the Kubernetes API.

    TLS certificates and the admin's token are created on the first start and kept in the data directory.
    """
    from drachma.process import hosting, logs

    logs.to_stderr()
    hosting.run(server.build(store, limits))
