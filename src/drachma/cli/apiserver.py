"""``drachma apiserver``: the Kubernetes API on a data directory, for kubectl and every other client."""

from drachma.cli import options, serveroptions


@serveroptions.expand
def apiserver(
    server: serveroptions.ServerOptions,
    store: serveroptions.StoreOptions,
    limits: serveroptions.LimitOptions,
    log_format: options.LogFormat = options.LogLines.TEXT,
) -> None:
    """Serve the Kubernetes API.

    TLS certificates and the admin's token are created on the first start and kept in the data directory.
    """
    from drachma.process import hosting, logs

    logs.to_stderr(is_json=log_format.is_json)
    hosting.run(server.build(store, limits))
