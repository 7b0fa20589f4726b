"""``drachma apiserver``: the Kubernetes API on a data directory, for kubectl and everything else that speaks it."""

from drachma.cli import limitoptions, optiongroup, serveroptions
from drachma.process import hosting, logs


@optiongroup.expand
def apiserver(
    server: serveroptions.ServerOptions, store: serveroptions.StoreOptions, limits: limitoptions.LimitOptions
) -> None:
    """Serve the Kubernetes API.

    TLS certificates and the admin's token are made on the first start and kept in the data directory.
    """
    logs.to_stderr()
    hosting.run(server.build(store, limits))
