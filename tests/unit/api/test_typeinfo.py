"""Type information of structs: built once for all, so that threads can decode."""

import subprocess
import sys

RACE = """
import sys, threading
import msgspec
from drachma.api import typeinfo

sys.setswitchinterval(1e-6)
data = b"{" + b",".join(b'"f%d":{"a":1}' % number for number in range(30)) + b"}"

def make(number):
    class Leaf(msgspec.Struct):
        a: int = 0
        b: str = ""
    return msgspec.defstruct(f"Kind{number}", [(f"f{place}", Leaf, None) for place in range(30)])

def decode(kind, barrier):
    barrier.wait()
    msgspec.json.decode(data, type=kind)

for number in range(400):
    kind = make(number)
    typeinfo.build()
    barrier = threading.Barrier(4)
    threads = [threading.Thread(target=decode, args=(kind, barrier)) for _ in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
"""


def test_threads_can_decode_the_same_structs_for_the_first_time() -> None:
    """Without :func:`typeinfo.build` this program ends with a segmentation fault."""
    done = subprocess.run([sys.executable, "-c", RACE], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
