"""Lists and watches: objects at a revision, pages, and changes."""
