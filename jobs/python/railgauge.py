# railgauge.py - read a cost matrix from Python by librailgauge: one file, the standard library only.
#
#   from railgauge import Matrix
#   with Matrix("matrix.json") as m, m.job("model=llama3.1-70b layout=tp=4,dp=auto") as job:
#       print(m.pair(m.find("r00n00", 0), m.find("r01n00", 0), 1 << 20))   # seconds
#       print(job.cost(["r00n00", "r00n01", "r00n02", "r00n03"]))
#       for seconds, hosts in job.best(m.hosts(), need=4, k=8).sets:
#           print(seconds, hosts)
#       print(job.place(m.hosts(), need=4).order)   # the endpoint of each rank
#
# railgauge(3) says what each answer means: seconds, nan where unknown, inf where a part is dead.  What
# has a reason raises Error with it.  The library is $LIBRAILGAUGE or librailgauge.so.0; any number of
# threads may share a Matrix and its jobs.
import ctypes
import math
import os
from collections import namedtuple
from ctypes import POINTER, byref, c_char_p, c_double, c_int, c_size_t, c_void_p

Best = namedtuple("Best", "sets exact")  # sets: [(seconds, [host, ...]), ...], cheapest first
Place = namedtuple("Place", "order seconds as_listed bound how")  # order: [endpoint, ...], by rank


class Error(Exception):
    """A sentence of the library."""


class _Placed(ctypes.Structure):
    _fields_ = [
        ("ranks", c_int),
        ("seconds", c_double),
        ("as_listed", c_double),
        ("bound", c_double),
        ("how", ctypes.c_char * 256),
    ]


def _load():
    lib = ctypes.CDLL(os.environ.get("LIBRAILGAUGE", "librailgauge.so.0"))
    text, ints = c_char_p, POINTER(c_int)
    for name, result, *arguments in (
        ("open", c_int, POINTER(c_void_p), text, text),
        ("close", None, c_void_p),
        ("count", c_int, c_void_p),
        ("find", c_int, c_void_p, text, c_int),
        ("host_count", c_int, c_void_p),
        ("host_name", text, c_void_p, c_int),
        ("host_find", c_int, c_void_p, text),
        ("level", text, c_void_p, c_int, text),
        ("pair", c_double, c_void_p, c_int, c_int, c_size_t),
        ("collective", c_double, c_void_p, text, ints, c_int, c_size_t),
        ("job_open", c_int, POINTER(c_void_p), c_void_p, text, text),
        ("job_close", None, c_void_p),
        ("nodes_cost", c_double, c_void_p, ints, c_int, text),
        ("nodes_best", c_int, c_void_p, ints, c_int, c_int, c_int, ints, POINTER(c_double), ints, text),
        ("place", c_int, c_void_p, ints, c_int, c_int, c_double, ints, c_int, POINTER(_Placed), text),
    ):
        function = getattr(lib, "railgauge_" + name)
        function.restype, function.argtypes = result, arguments
    return lib


_lib = _load()


def _text(words):
    if "\0" in words:
        raise Error("a text with a NUL")
    return words.encode("utf-8", "surrogateescape")


class _Handle:
    """What is opened by one function and closed by another."""

    def __init__(self, opens, closes, *arguments):
        self._at, self._closes = c_void_p(), closes
        why = ctypes.create_string_buffer(256)
        if opens(byref(self._at), *arguments, why) < 0:
            raise Error(why.value.decode("utf-8", "replace"))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    @property
    def at(self):
        if not self._at:
            raise Error("closed already")
        return self._at

    def close(self):
        if self._at:
            self._closes(self._at)
            self._at = c_void_p()


class Matrix(_Handle):
    def __init__(self, path):
        super().__init__(_lib.railgauge_open, _lib.railgauge_close, _text(os.fspath(path)))

    def __len__(self):
        """Number of endpoints; ids are 0 .. len - 1."""
        return _lib.railgauge_count(self.at)

    def find(self, host, gpu):
        """The endpoint's id; None: there is none."""
        found = _lib.railgauge_find(self.at, _text(host), gpu)
        return found if found >= 0 else None

    def hosts(self):
        names = (_lib.railgauge_host_name(self.at, i) for i in range(_lib.railgauge_host_count(self.at)))
        return [name.decode("utf-8", "surrogateescape") for name in names]

    def level(self, endpoint, level):
        """The group: level(17, "rack"); None: not known."""
        name = _lib.railgauge_level(self.at, endpoint, _text(level))
        return name.decode("utf-8", "surrogateescape") if name is not None else None

    def pair(self, src, dst, size):
        return _lib.railgauge_pair(self.at, src, dst, size)

    def collective(self, op, ids, size):
        return _lib.railgauge_collective(self.at, _text(op), (c_int * len(ids))(*ids), len(ids), size)

    def job(self, words):
        return Job(self, words)


class Job(_Handle):
    """A job of a matrix, which must stay open as long."""

    def __init__(self, matrix, words):
        self.matrix = matrix
        super().__init__(_lib.railgauge_job_open, _lib.railgauge_job_close, matrix.at, _text(words))

    def _hosts(self, names):
        found = [_lib.railgauge_host_find(self.matrix.at, _text(name)) for name in names]
        for name, host in zip(names, found):
            if host < 0:
                raise Error(f"host {name} is not in the matrix")
        return (c_int * len(found))(*found)

    def cost(self, hosts):
        """Seconds of a step on these hosts, in this order; inf: a part is dead."""
        why = ctypes.create_string_buffer(256)
        seconds = _lib.railgauge_nodes_cost(self.at, self._hosts(hosts), len(hosts), why)
        if math.isnan(seconds):
            raise Error(why.value.decode("utf-8", "replace"))
        return seconds

    def best(self, free, need, k=1):
        """The k cheapest sets of `need` of the free hosts."""
        if need < 1 or need > len(free) or k < 1 or need * k > 1 << 22:
            raise Error(f"{k} sets of {need} of {len(free)} hosts")
        hosts, seconds, exact = (c_int * (need * k))(), (c_double * k)(), c_int()
        why = ctypes.create_string_buffer(256)
        n = _lib.railgauge_nodes_best(
            self.at, self._hosts(free), len(free), need, k, hosts, seconds, byref(exact), why
        )
        if n < 0:
            raise Error(why.value.decode("utf-8", "replace"))
        names = self.matrix.hosts()
        sets = [(seconds[i], [names[h] for h in hosts[i * need : (i + 1) * need]]) for i in range(n)]
        return Best(sets, bool(exact.value))

    def place(self, free, need=0, limit=0):
        """Which of the free hosts (need: at most so many), and which rank where."""
        placed, why = _Placed(), ctypes.create_string_buffer(256)
        order = (c_int * _lib.railgauge_count(self.matrix.at))()
        if _lib.railgauge_place(
            self.at, self._hosts(free), len(free), need, limit, order, len(order), byref(placed), why
        ) < 0:
            raise Error(why.value.decode("utf-8", "replace"))
        return Place(
            order[: placed.ranks], placed.seconds, placed.as_listed, placed.bound, placed.how.decode()
        )
