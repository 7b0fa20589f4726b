"""Rules about claims that several components share: claims of pods, ownership, reservations, devices and taints.

Pure functions over API objects. Allocator, validation, server, controllers and scheduler ask here, so that a rule that
two of them need is written once.
"""
