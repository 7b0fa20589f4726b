"""A test for drivers in any language: whether a node agent and a cluster can rely on them.

========= =======================================================================================
subject   the driver under test as a process: started, killed, stopped; or one that runs already
stage     what rules do with it: claims that are allocated, calls on its sockets, its files and slices
apifaults what its API server does wrong, when a rule says so
check     a rule, with where it comes from; ``acts`` is what several of them do
rules     all of them, by subject
checks    trying them
report    what came of it, for people and for programs
========= =======================================================================================

Rules talk to the driver only through its sockets, its CDI files and the API server, as a kubelet would.
"""
