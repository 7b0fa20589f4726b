"""``python -m drachma``: the command line where ``drachma`` is not on the path."""

from drachma.cli import main

if __name__ == "__main__":
    main()
