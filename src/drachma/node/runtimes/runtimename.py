"""What runs containers, by the names that people choose from."""

import enum


class RuntimeName(enum.StrEnum):
    """A way to run containers: imagined ones, processes of the machine, or podman's."""

    SIMULATED = "simulated"
    PROCESS = "process"
    PODMAN = "podman"
