import ctypes
import os
import subprocess
import sys

import pytest

from memoryhub.management.shared_heaps import MOST_HEAPS

COUNT_HEAPS = """
import ctypes, sys, threading
from memoryhub.management.shared_heaps import share_heaps
if sys.argv[1] == "shared":
    share_heaps()
ready = threading.Barrier(5)
kept = []
def work():
    kept.append([bytes(900) for _ in range(200)])
    ready.wait()
threads = [threading.Thread(target=work) for _ in range(4)]
for thread in threads:
    thread.start()
ready.wait()
libc = ctypes.CDLL(None)
libc.malloc_info(0, ctypes.c_void_p.in_dll(libc, "stdout"))
libc.fflush(None)
"""


@pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "malloc_info"), reason="a C library without such heaps")
def test_threads_share_two_heaps():
    def heaps(how):
        env = {
            name: value for name, value in os.environ.items() if name not in ("MALLOC_ARENA_MAX", "GLIBC_TUNABLES")
        }
        command = [sys.executable, "-c", COUNT_HEAPS, how]
        run = subprocess.run(command, capture_output=True, text=True, check=True, env=env)
        return run.stdout.count("<heap nr=")

    assert heaps("shared") <= MOST_HEAPS < heaps("as usual")
