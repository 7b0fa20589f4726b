"""Names of container runtimes."""

import enum


class RuntimeName(enum.StrEnum):
    """A container runtime: simulated, processes of the machine, or podman."""

    SIMULATED = "simulated"
    PROCESS = "process"
    PODMAN = "podman"
