"""Collisions: what two schedulers decided at the same time, and what cannot both come true."""


class CollisionError(Exception):
    """Another scheduler was faster; the text says with what."""


class HeldError(CollisionError):
    """Another scheduler has the very pod in hand, or it is bound or gone."""
