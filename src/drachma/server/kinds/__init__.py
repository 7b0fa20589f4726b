"""What is particular to each kind that the server stores: how it is read, defaulted, prepared, checked and shown."""
