"""Queues and quota for workloads and their devices: the rules of Kueue, as values and functions.

The core is pure: a configuration, queues, flavors and workloads in; requests, assignments, victims and conditions out.
Components around it read and write objects.
"""
