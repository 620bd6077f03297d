# SPDX-License-Identifier: BSD-3-Clause
"""Collectives and jobs on nodes, by librailgauge: $LIBRAILGAUGE or librailgauge.so.0, loaded when it is first needed.

railgauge(3) says what each answer means.  What has a reason raises Error with it.  Any number of threads may share
a matrix and its jobs."""

from __future__ import annotations

import ctypes
import functools
import math
import os
from ctypes import POINTER, byref, c_char_p, c_double, c_int, c_size_t, c_void_p
from typing import TYPE_CHECKING, Any, Callable, NamedTuple, Optional, Sequence

from .files import Error, Path

if TYPE_CHECKING:
    from .matrix import Matrix


class NoLibrary(Error):
    """The C library is not there."""


class Best(NamedTuple):
    sets: list[tuple[float, list[str]]]  #: seconds of a step, hosts; cheapest first
    exact: bool  #: no other set is cheaper


class Place(NamedTuple):
    order: list[int]  #: the endpoint of each rank
    seconds: float  #: of a step in this order
    as_listed: float  #: of the hosts as they were listed
    bound: float  #: no choice and no order is faster; 0: nothing is claimed
    how: str


class Price(NamedTuple):
    """A price, its interval and its origin."""

    seconds: float
    low: float
    high: float
    basis: str  #: "measured", "fitted", "preset" or "modelled"
    source: str  #: which curve, or which algorithm and protocol over which links; software that is not modelled


class _Price(ctypes.Structure):
    _fields_ = [("seconds", c_double), ("low", c_double), ("high", c_double), ("basis", c_char_p),
                ("source", ctypes.c_char * 208)]


class _Range(ctypes.Structure):
    _fields_ = [("first", c_int), ("count", c_int), ("step", c_int)]


class _Placed(ctypes.Structure):
    _fields_ = [
        ("ranks", c_int),
        ("seconds", c_double),
        ("as_listed", c_double),
        ("bound", c_double),
        ("how", ctypes.c_char * 256),
    ]


@functools.lru_cache(maxsize=None)
def _load() -> Any:
    name = os.environ.get("LIBRAILGAUGE", "librailgauge.so.0")
    try:
        lib = ctypes.CDLL(name)
    except OSError as why:
        raise NoLibrary(f"collectives and jobs need the C library, $LIBRAILGAUGE or where ld.so looks: {why}") from None
    text, ints = c_char_p, POINTER(c_int)
    for name, result, *arguments in (
        ("open", c_int, POINTER(c_void_p), text, text),
        ("close", None, c_void_p),
        ("count", c_int, c_void_p),
        ("host_find", c_int, c_void_p, text),
        ("hosts_range", c_int, c_void_p, c_int, c_int, POINTER(_Range)),
        ("collective", c_double, c_void_p, text, ints, c_int, c_size_t),
        ("group_open", c_int, POINTER(c_void_p), c_void_p, text, ints, c_int, text),
        ("group_close", None, c_void_p),
        ("group_time", c_double, c_void_p, c_size_t),
        ("group_price", None, c_void_p, c_size_t, POINTER(_Price)),
        ("collective_ranges", c_double, c_void_p, text, POINTER(_Range), c_int, c_size_t),
        ("job_open", c_int, POINTER(c_void_p), c_void_p, text, text),
        ("job_close", None, c_void_p),
        ("nodes_cost", c_double, c_void_p, ints, c_int, text),
        ("nodes_best", c_int, c_void_p, ints, c_int, c_int, c_int, ints, POINTER(c_double), ints, text),
        ("rank", c_int, c_void_p, ints, POINTER(c_size_t), c_int, POINTER(c_double), ints, text),
        ("list_open", c_int, POINTER(c_void_p), c_void_p, ints, c_int, text),
        ("list_close", None, c_void_p),
        ("list_cost", c_double, c_void_p),
        ("list_swap", c_double, c_void_p, c_int, c_int, text),
        ("place", c_int, c_void_p, ints, c_int, c_int, c_double, ints, c_int, POINTER(_Placed), text),
    ):
        function = getattr(lib, "railgauge_" + name)
        function.restype, function.argtypes = result, arguments
    return lib


def _bytes(size: float) -> int:
    if not 0 <= size < 1 << 63:
        raise Error(f"{size} bytes")
    return int(size)


def _text(words: str) -> bytes:
    if "\0" in words:
        raise Error("a text with a NUL")
    return words.encode("utf-8", "surrogateescape")


class Handle:
    """What is opened by one function and closed by another."""

    def __init__(self, opens: Callable, closes: Callable, *arguments: Any):
        self._at, self._closes = c_void_p(), closes
        why = ctypes.create_string_buffer(256)
        if opens(byref(self._at), *arguments, why) < 0:
            raise Error(why.value.decode("utf-8", "replace"))

    @classmethod
    def of_matrix(cls, path: Path, endpoints: int) -> Handle:
        handle = cls(_load().railgauge_open, _load().railgauge_close, _text(os.fspath(path)))
        if _load().railgauge_count(handle.at) != endpoints:
            handle.close()
            raise Error(f"{path}: it has changed since it was read here")
        return handle

    def hosts_range(self, first: int, count: int) -> Optional[range]:
        """Of a matrix: as Matrix.hosts_range()."""
        if not 0 <= first < 1 << 31 or not 0 < count < 1 << 31:
            return None
        found = _Range()
        if _load().railgauge_hosts_range(self.at, first, count, byref(found)) < 0:
            return None
        return range(found.first, found.first + found.count * found.step, found.step)

    def collective(self, op: str, ids: Sequence[int], bytes: float) -> float:
        """Of a matrix: as Matrix.collective()."""
        return _load().railgauge_collective(self.at, _text(op), (c_int * len(ids))(*ids), len(ids), _bytes(bytes))

    def collective_ranges(self, op: str, ranges: Sequence[range], bytes: int) -> float:
        """Of a matrix: as Matrix.collective_ranges()."""
        bytes = _bytes(bytes)
        given = [some for some in ranges if len(some)]
        for some in given:
            if some.step < 1 or not 0 <= some[0] <= some[-1] < 1 << 31:
                raise Error(f"{some} is no range of endpoints that ascend")
        # the step of one member says nothing, and may be any
        rows = [_Range(some[0], len(some), some.step if len(some) > 1 else 1) for some in given]
        return _load().railgauge_collective_ranges(self.at, _text(op), (_Range * len(rows))(*rows), len(rows), bytes)

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def at(self) -> c_void_p:
        if not self._at:
            raise Error("closed already")
        return self._at

    def close(self) -> None:
        if self._at:
            self._closes(self._at)
            self._at = c_void_p()


class Quote(Handle):
    """A collective on one group, resolved once for any size.  Its matrix must stay open as long."""

    def __init__(self, matrix: Matrix, op: str, ids: Sequence[int]):
        self._matrix, self._asked = matrix, (_text(op), (c_int * len(ids))(*ids), len(ids))
        self._good: Optional[Handle] = None
        super().__init__(_load().railgauge_group_open, _load().railgauge_group_close, matrix._by_library().at, *self._asked)

    def time(self, bytes: float) -> float:
        """Seconds as it is."""
        return _load().railgauge_group_time(self.at, _bytes(bytes))

    def price(self, bytes: float) -> Price:
        """time() with its interval and origin."""
        p = _Price()
        _load().railgauge_group_price(self.at, _bytes(bytes), byref(p))
        return Price(p.seconds, p.low, p.high, p.basis.decode(), p.source.decode("utf-8", "replace"))

    def healthy(self, bytes: float) -> float:
        """Seconds where no part is slow."""
        if self._good is None:
            lib = _load()
            self._good = Handle(lib.railgauge_group_open, lib.railgauge_group_close, self._matrix._without_parts().at, *self._asked)
        return _load().railgauge_group_time(self._good.at, _bytes(bytes))

    def close(self) -> None:
        if self._good:
            self._good.close()
        super().close()


class Job(Handle):
    """A job of a matrix, which must stay open as long."""

    def __init__(self, matrix: Matrix, words: str):
        self.matrix, self._lib = matrix, _load()
        super().__init__(self._lib.railgauge_job_open, self._lib.railgauge_job_close, self._handle(), _text(words))

    def _handle(self) -> c_void_p:
        if self.matrix._library is None:
            raise Error("closed already")
        return self.matrix._library.at

    def _hosts(self, names: Sequence[str]) -> Any:
        matrix = self._handle()
        found = [self._lib.railgauge_host_find(matrix, _text(name)) for name in names]
        for name, host in zip(names, found):
            if host < 0:
                raise Error(f"host {name} is not in the matrix")
        return (c_int * len(found))(*found)

    def cost(self, hosts: Sequence[str]) -> float:
        """Seconds of a step on these hosts, in this order; inf: a part is dead."""
        why = ctypes.create_string_buffer(256)
        seconds = self._lib.railgauge_nodes_cost(self.at, self._hosts(hosts), len(hosts), why)
        if math.isnan(seconds):
            raise Error(why.value.decode("utf-8", "replace"))
        return seconds

    def rank(self, lists: Sequence[Sequence[str]]) -> list[float]:
        """cost() of each list, all at once; nan where it has none."""
        start, names = [0], []
        for some in lists:
            names += some
            start.append(len(names))
        seconds, why = (c_double * len(lists))(), ctypes.create_string_buffer(256)
        hosts = self._hosts(names)
        if self._lib.railgauge_rank(
            self.at, hosts, (c_size_t * len(start))(*start), len(lists), seconds, None, why
        ) < 0:
            raise Error(why.value.decode("utf-8", "replace"))
        return list(seconds)

    def nodes(self, hosts: Sequence[str]) -> Nodes:
        """A list that changes a host at a time."""
        return Nodes(self, hosts)

    def best(self, free: Sequence[str], need: int, k: int = 1) -> Best:
        """The k cheapest sets of `need` of the free hosts."""
        if need < 1 or need > len(free) or k < 1 or need * k > 1 << 22:
            raise Error(f"{k} sets of {need} of {len(free)} hosts")
        hosts, seconds, exact = (c_int * (need * k))(), (c_double * k)(), c_int()
        why = ctypes.create_string_buffer(256)
        n = self._lib.railgauge_nodes_best(
            self.at, self._hosts(free), len(free), need, k, hosts, seconds, byref(exact), why
        )
        if n < 0:
            raise Error(why.value.decode("utf-8", "replace"))
        names = self.matrix.hosts()
        sets = [(seconds[i], [names[h] for h in hosts[i * need : (i + 1) * need]]) for i in range(n)]
        return Best(sets, bool(exact.value))

    def place(self, free: Sequence[str], need: int = 0, limit: float = 0) -> Place:
        """Which of the free hosts (need: at most so many), and which rank where."""
        placed, why = _Placed(), ctypes.create_string_buffer(256)
        order = (c_int * self._lib.railgauge_count(self._handle()))()
        if self._lib.railgauge_place(
            self.at, self._hosts(free), len(free), need, limit, order, len(order), byref(placed), why
        ) < 0:
            raise Error(why.value.decode("utf-8", "replace"))
        return Place(
            order[: placed.ranks], placed.seconds, placed.as_listed, placed.bound, placed.how.decode()
        )


class Nodes(Handle):
    """Hosts of a job, which must stay open as long; of one thread at a time."""

    def __init__(self, job: Job, hosts: Sequence[str]):
        self._job, self._lib = job, job._lib
        super().__init__(
            self._lib.railgauge_list_open, self._lib.railgauge_list_close, job.at, job._hosts(hosts), len(hosts)
        )

    def cost(self) -> float:
        """Seconds of a step on them, as Job.cost() says; inf: a part is dead."""
        self._job.at
        return self._lib.railgauge_list_cost(self.at)

    def swap(self, at: int, host: str) -> float:
        """Another host at this position, and cost() then; refused: they stay as they were."""
        why = ctypes.create_string_buffer(256)
        self._job.at
        seconds = self._lib.railgauge_list_swap(self.at, at, self._job._hosts([host])[0], why)
        if math.isnan(seconds):
            raise Error(why.value.decode("utf-8", "replace"))
        return seconds
