"""Reports: what of a cluster is in use, and what of the rest could be had in one piece; as data and as pictures."""
