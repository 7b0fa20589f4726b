"""Clusters over time: jobs arrive, wait, run and end in virtual time, decided by the real scheduler and queues.

The simulation owns the clock. It moves from event to event, and at each moment runs admission cycles and scheduling
cycles until nothing changes any more. Nothing sleeps, and nothing is written.
"""
