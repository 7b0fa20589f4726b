"""The controller of persistent volumes: gives them to claims, and says what became of both."""

from drachma.controllers.persistentvolume.volumebinder import PersistentVolumeBinder

__all__ = ["PersistentVolumeBinder"]
