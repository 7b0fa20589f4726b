"""The namespace controller: empties a namespace that is being deleted, then lets it go."""

from drachma.controllers.namespace.namespacecontroller import NamespaceController

__all__ = ["NamespaceController"]
