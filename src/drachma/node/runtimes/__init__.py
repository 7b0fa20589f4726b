"""What runs containers: one Protocol, and the ways there are to fulfil it."""
