"""Keeping the ResourceSlices of a driver as it wants them.

============= =======================================================================
layout        pools as they are divided into slices: what is wanted
poolrules     what makes a pool unusable though each of its slices is valid
plan          from what is wanted and what is there to the writes that are missing
droppedfields what an API server did not store, and which feature that belongs to
sliceview     the slices that are there, with writes that the informer has not seen
publisher     the loop around it
============= =======================================================================

The first four are pure. Behaviour follows upstream's ResourceSlice controller; docs/differences.md has what does not.
"""
