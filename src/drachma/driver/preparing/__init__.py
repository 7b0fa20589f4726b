"""Work of the SDK around a driver's ``prepare`` and ``unprepare``.

============= ================================================================================
checkpoint    which claims were begun and prepared, in a file that outlives the process
claimfiles    the CDI file of a claim, and the files that tell containers what they were given
preparer      the driver as node agents call it: idempotent, whatever happens in between
============= ================================================================================
"""
