"""Structural schemas: what a CustomResourceDefinition says about its objects, and everything that follows from it.

A schema is parsed once. Objects are pruned, completed and checked by it, in upstream's order and with its messages
(``customresource`` is the front door for that); whether a schema may be used at all is for ``structure`` to say.
"""
