"""What a cluster has, as rows for people: devices, pools, claims, nodes and pods. Pure: objects in, rows out."""
