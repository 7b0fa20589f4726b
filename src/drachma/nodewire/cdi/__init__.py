"""The Container Device Interface: files in which drivers say what a container needs to use a device.

========= ==============================================================================
names     ``vendor.com/class=device`` and its parts
spec      what a file says, and the oldest version of the interface that can say it
document  the text of a file
rules     what makes a spec invalid, in the words of the interface's Go library
edits     what a spec changes in the OCI configuration of a container
registry  the devices of all files in a list of directories, and what is wrong with any
files     writing and removing the files of a driver
========= ==============================================================================

All but the last two are pure. Reading follows the Go library, which container runtimes use, to the word; writing is
stricter (:func:`rules.check_annotations`).
"""
