"""The patches that change a document: JSON patch, merge patch and strategic merge patch."""
