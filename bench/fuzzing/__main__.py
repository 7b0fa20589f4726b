"""Command line of the fuzz run."""

import sys

from bench.fuzzing import commandline

if __name__ == "__main__":
    sys.exit(commandline.main(sys.argv[1:]))
