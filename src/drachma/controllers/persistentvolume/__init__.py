"""The controller of persistent volumes: binds them to claims, and writes the phases of both."""

from drachma.controllers.persistentvolume.volumebinder import PersistentVolumeBinder

__all__ = ["PersistentVolumeBinder"]
