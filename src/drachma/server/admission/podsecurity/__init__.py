"""Pod Security admission: the Pod Security Standards, applied by the labels of namespaces.

``policies`` reads labels, ``checks`` has the controls of each standard by version, and runs those of a level
and version on a pod, ``existingpods`` runs them on the pods of a namespace whose policy changes, and ``plugin`` is the
admission plugin. Only ``plugin`` knows of requests; the rest is pure, except that ``existingpods`` yields to the event
loop.
"""
