# prices.py - MATRIX SEED HEALTHY: pairs cost the same in Python as in C, and collectives what the command line says, on random
# groups and sizes; healthy ones what a matrix without its exceptions (HEALTHY) says.
import ctypes
import json
import math
import os
import random
import subprocess
import sys

from railgauge import Matrix
from railgauge.price import OPS

path, rnd = sys.argv[1], random.Random(int(sys.argv[2]))
m, good = Matrix(path), Matrix(sys.argv[3])
lib = ctypes.CDLL(os.environ["LIBRAILGAUGE"])
handle, why = ctypes.c_void_p(), ctypes.create_string_buffer(256)
lib.railgauge_pair.restype = ctypes.c_double
lib.railgauge_pair.argtypes = [ctypes.c_void_p, ctypes.c_int, ctypes.c_int, ctypes.c_size_t]
assert lib.railgauge_open(ctypes.byref(handle), os.fspath(m.path).encode(), why) == 0, why.value


def size():
    return int(2 ** rnd.uniform(0, 36))


def group():
    """In a row, strided, shuffled, or any."""
    n, count = len(m), min(len(m), rnd.choice([2, 3, 4, 8, 16, 31, 72, len(m)]))
    how = rnd.random()
    if how < 0.4:
        first = rnd.randrange(n - count + 1)
        return list(range(first, first + count))
    if how < 0.7:
        strided = list(range(rnd.randrange(n), n, rnd.choice([2, 4, 8, 18, 36])))[:count]
        return strided if len(strided) > 1 else [0, n - 1]
    return rnd.sample(range(n), count)


def same(mine, theirs, within, *what):
    if not (mine == theirs or (math.isnan(mine) and math.isnan(theirs)) or abs(mine / theirs - 1) < within):
        sys.exit(f"{path}, seed {sys.argv[2]}: {mine!r} and not {theirs!r}: {what}")


def cost(*words):
    """Answer of the command line; null: not known, or a part is dead."""
    done = subprocess.run(["railgauge", "cost", m.path, *map(str, words), "--json"], capture_output=True, check=True)
    return json.loads(done.stdout)


slowed = 0
for k in range(400):
    op, some, bytes = rnd.choice(list(OPS)), group(), size()
    q = m.quote(op, some)
    p, healthy = q.price(bytes), q.healthy(bytes)
    assert m.collective(op, some, bytes) == q.time(bytes) == p.seconds or math.isnan(p.seconds), (op, some, bytes, p)
    same(healthy, good.collective(op, some, bytes), 1e-12, op, some, bytes)
    slowed += p.seconds > healthy
    answer = cost(op, ",".join(map(str, some)), bytes) if k < 20 else {"seconds": None}
    if answer["seconds"] is not None:  # nine digits
        same(p.seconds, answer["seconds"], 1e-8, op, some, bytes)
        # the command line knows names of NICs from the topology beside the matrix
        mine, theirs = (text.partition(";")[0][:200] for text in (p.source, answer["source"]))
        assert (p.basis, mine) == (answer["basis"], theirs), (p, answer)
for _ in range(2000):
    src, dst, bytes = rnd.randrange(len(m)), rnd.randrange(len(m)), size()
    # the library looks pairs up in a grid of 16 cells an octave
    same(m.pair(src, dst, bytes), lib.railgauge_pair(handle, src, dst, bytes), 2e-3, src, dst, bytes)
for _ in range(20):
    src, dst, bytes = *rnd.sample(range(len(m)), 2), size()
    answer = cost(src, dst, bytes)
    if answer["seconds"] is not None:
        same(m.pair(src, dst, bytes), answer["seconds"], 1e-8, src, dst, bytes)
print(f"{path}: {slowed} of 400 groups had a slow part")
