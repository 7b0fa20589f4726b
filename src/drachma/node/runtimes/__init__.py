"""Container runtimes: one protocol, with containers as processes or by podman."""
