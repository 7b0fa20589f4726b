"""Lists and watches: which objects, as of which revision, and how to go on."""
