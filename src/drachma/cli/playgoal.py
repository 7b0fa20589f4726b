"""Goals of ``drachma play --wait``."""

import enum


class Goal(enum.StrEnum):
    """State that all pods must reach."""

    SCHEDULED = "scheduled"
    RUNNING = "running"
    COMPLETE = "complete"
