"""Command line of the restart matrix."""

import sys

from bench.soak import commandline

if __name__ == "__main__":
    sys.exit(commandline.main(sys.argv[1:]))
