"""Reports on usage and fragmentation of a cluster, as data and as pictures."""
