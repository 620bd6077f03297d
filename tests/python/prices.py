# prices.py - MATRIX SEED: pairs and collectives cost the same in Python as in C, on random groups and sizes.
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
m, ids = Matrix(path), ctypes.POINTER(ctypes.c_int)
lib = ctypes.CDLL(os.environ["LIBRAILGAUGE"])
handle, why = ctypes.c_void_p(), ctypes.create_string_buffer(256)
lib.railgauge_collective.restype = lib.railgauge_pair.restype = ctypes.c_double
lib.railgauge_collective.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ids, ctypes.c_int, ctypes.c_size_t]
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


class Price(ctypes.Structure):
    _fields_ = [("seconds", ctypes.c_double), ("low", ctypes.c_double), ("high", ctypes.c_double),
                ("basis", ctypes.c_char_p), ("source", ctypes.c_char * 208)]


lib.railgauge_group_price.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.POINTER(Price)]
lib.railgauge_group_close.argtypes = [ctypes.c_void_p]


def price(op, some, bytes):
    """By the library, with its interval."""
    g, p = ctypes.c_void_p(), Price()
    assert lib.railgauge_group_open(ctypes.byref(g), handle, op.encode(), (ctypes.c_int * len(some))(*some), len(some), why) == 0
    lib.railgauge_group_price(g, bytes, ctypes.byref(p))
    lib.railgauge_group_close(g)
    return p


slowed = 0
for _ in range(400):
    op, some, bytes = rnd.choice(list(OPS)), group(), size()
    c = lib.railgauge_collective(handle, op.encode(), (ctypes.c_int * len(some))(*some), len(some), bytes)
    same(m.collective(op, some, bytes), c, 1e-9, op, some, bytes)
    slowed += m.quote(op, some).ways.slowed
    mine, theirs = m.quote(op, some).price(bytes), price(op, some, bytes)
    if math.isfinite(mine.seconds):
        for a, b in zip(mine[:3], (theirs.seconds, theirs.low, theirs.high)):
            same(a, b, 1e-9, op, some, bytes, theirs.source)
        note = f"; {mine.not_modelled} is not modelled" if mine.not_modelled else ""
        if note not in theirs.source.decode() or (not note and "is not modelled" in theirs.source.decode()):
            sys.exit(f"{path}, seed {sys.argv[2]}: {mine.not_modelled!r} is not in {theirs.source}")
        if mine.basis != theirs.basis.decode():
            sys.exit(f"{path}, seed {sys.argv[2]}: {mine.basis} and not {theirs.basis}: {op} {some} {bytes}")
for _ in range(2000):
    src, dst, bytes = rnd.randrange(len(m)), rnd.randrange(len(m)), size()
    # the library looks pairs up in a grid of 16 cells an octave
    same(m.pair(src, dst, bytes), lib.railgauge_pair(handle, src, dst, bytes), 2e-3, src, dst, bytes)
for _ in range(20):
    src, dst, bytes = *rnd.sample(range(len(m)), 2), size()
    words = [m.path, str(src), str(dst), str(bytes), "--json"]
    answer = json.loads(subprocess.run(["railgauge", "cost", *words], capture_output=True, check=True).stdout)
    if answer["seconds"] is not None:  # nine digits
        same(m.pair(src, dst, bytes), answer["seconds"], 1e-8, src, dst, bytes)
print(f"{path}: {slowed} of 400 groups had a slow part")
