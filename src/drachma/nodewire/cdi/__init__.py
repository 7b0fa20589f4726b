"""The Container Device Interface: files in which drivers describe what a container needs to use a device.

========= ==============================================================================
names     ``vendor.com/class=device`` and its parts
spec      the content of a file, and the oldest version of the interface that it needs
document  the text of a file
rules     validation of a spec, with the messages of the interface's Go library
edits     changes that a spec makes to the OCI configuration of a container
registry  the devices of all files in a list of directories, and the problems of files
files     writing and removing the files of a driver
========= ==============================================================================

All but the last two are pure. Reading follows the Go library, which container runtimes use, to the letter; writing is
stricter (:func:`rules.check_annotations`).
"""
