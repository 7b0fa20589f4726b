"""What a request says, whoever makes it: who, which verb on what, and with which options."""
