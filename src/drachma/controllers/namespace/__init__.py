"""The namespace controller: deletes the contents of a namespace that is being deleted, then finalizes it."""

from drachma.controllers.namespace.namespacecontroller import NamespaceController

__all__ = ["NamespaceController"]
