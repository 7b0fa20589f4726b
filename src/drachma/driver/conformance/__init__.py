"""A test for drivers in any language: whether a node agent and a cluster can rely on them.

======== ========================================================================================
subject  the driver under test as a process: started, killed, stopped; or one that runs already
stage    what checks do with it: claims that are allocated, calls on its sockets, its files and slices
checks   what is asked of a driver, each with the rule and where it comes from
report   what came of it, for people and for programs
======== ========================================================================================

Checks talk to the driver only through its sockets, its CDI files and the API server, as a kubelet would.
"""
