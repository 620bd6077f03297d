# SPDX-License-Identifier: BSD-3-Clause
"""The price of a pair by a cost matrix: the arithmetic of the C library (src/matrix), where each formula has its source.
Bytes, seconds; nan: unknown, inf: a part on the way is dead.  Collectives are priced by the library alone."""

from __future__ import annotations

import bisect
import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from .matrix import Matrix

nan, inf = math.nan, math.inf


class Op(NamedTuple):
    """How a collective moves its bytes (src/base/op.h)."""

    alias: str
    whole: bool  #: S goes round whole, not in parts of which each rank has one already
    turns: int

    def bus_factor(self, ranks: int) -> float:
        """Bus bandwidth / (S / time), as nccl-tests defines it."""
        return self.turns * (1 if self.whole else (ranks - 1) / ranks)


OPS = {
    "all_gather": Op("allgather", False, 1),
    "reduce_scatter": Op("reducescatter", False, 1),
    "all_to_all": Op("alltoall", False, 1),
    "all_reduce": Op("allreduce", False, 2),
    "broadcast": Op("bcast", True, 1),
    "reduce": Op("red", True, 1),
    "sendrecv": Op("send_recv", True, 1),
}
#: pair operation: the curve of a tier that it is measured for
PAIR_OPS = {"pair_latency": "oneway", "pair_bw": "uni", "pair_bibw": "bi"}
DIRECTIONS = tuple(PAIR_OPS.values())


def op_name(word: str) -> str | None:
    """The operation of this name or alias; None: no collective."""
    return next((name for name, op in OPS.items() if word in (name, op.alias)), None)


def bus_factor(op: str, ranks: int) -> float:
    return OPS[op].bus_factor(ranks) if op in OPS else 1


# --- numbers as C has them ---

def least(*values: float) -> float:
    """fmin(): what is no number does not count."""
    return min((v for v in values if not math.isnan(v)), default=nan)


def most(*values: float) -> float:
    return max((v for v in values if not math.isnan(v)), default=nan)


# --- curves (src/matrix/curve.c) ---

def _slope(a: tuple[float, float], b: tuple[float, float]) -> float:
    return (b[1] - a[1]) / (b[0] - a[0])


@dataclass(frozen=True)
class Curve:
    """Measured medians by size; between two sizes a line with a knee where its neighbours' lines meet."""

    bytes: tuple[float, ...]
    sec: tuple[float, ...]
    low: tuple[float, ...]  #: 95 % interval of sec
    high: tuple[float, ...]
    n: tuple[int, ...]  #: samples behind each; 0: not measured
    alpha: float = 0  #: s, of the smallest size
    beta: float = 0  #: s/B at the largest sizes

    def __bool__(self) -> bool:
        return bool(self.bytes)

    def time(self, bytes: float) -> float:
        """Seconds; beyond the last size bandwidth rises towards 1 / beta."""
        if not self.bytes:
            return nan
        if not bytes > self.bytes[0]:
            return self.sec[0]
        if bytes >= self.bytes[-1]:
            slope = self.beta if self.beta > 0 else self.sec[-1] / self.bytes[-1]
            return self.sec[-1] + (bytes - self.bytes[-1]) * slope
        i = min(bisect.bisect_right(self.bytes, bytes) - 1, len(self.bytes) - 2)
        a, b = (self.bytes[i], self.sec[i]), (self.bytes[i + 1], self.sec[i + 1])
        knee = self._knee(i)
        if bytes < knee[0]:
            return a[1] + _slope(a, knee) * (bytes - a[0])
        return knee[1] + (_slope(knee, b) * (bytes - knee[0]) if knee[0] < b[0] else 0)

    def _knee(self, i: int) -> tuple[float, float]:
        """Bytes and seconds between point i and the next; that one where there is none."""
        point = list(zip(self.bytes, self.sec))
        a, b = point[i], point[i + 1]
        if b[1] < a[1]:
            return a[0] + (b[0] - a[0]) / 16, b[1]
        if i == 0 or i + 2 >= len(point) or b[0] > 8 * a[0]:
            return b
        left, chord, right = _slope(point[i - 1], a), _slope(a, b), _slope(b, point[i + 2])
        if not left > right >= 0:
            return b
        at = a[0] + (chord - right) * (b[0] - a[0]) / (left - right)
        return (at, a[1] + (chord + left) / 2 * (at - a[0])) if a[0] < at < b[0] else b

    def floor(self) -> float:
        """Seconds that do not grow with the size."""
        return max(0, self.sec[0] - self.bytes[0] * self.beta) if self.bytes else 0


EMPTY = Curve((), (), (), (), ())


@dataclass(frozen=True)
class Tier:
    """A class of pairs that cost the same."""

    name: str
    same: tuple[str, ...]
    basis: str
    nic: bool  #: its traffic crosses NICs
    loaded: float  #: bandwidth of parallel rounds / of pairs alone; nan: not measured
    curves: dict[str, Curve]
    rest: dict = field(default_factory=dict)

    def curve(self, direction: str) -> Curve:
        return self.curves.get(direction, EMPTY)

    def rate(self, direction: str = "bi") -> float:
        """B/s of one direction at large sizes; of "bi" where it was not measured that of "uni", of that "oneway"."""
        for i in range(DIRECTIONS.index(direction), -1, -1):
            curve = self.curve(DIRECTIONS[i])
            if curve and curve.beta > 0:
                return 1 / curve.beta
        return nan


def _stretched(floor: float, sec: float, factor: float) -> float:
    base = least(floor, sec)
    return base + (sec - base) / factor


def _bandwidth_time(curve: Curve, bytes: float) -> float:
    if curve and bytes < curve.bytes[0]:
        return curve.sec[0] * bytes / curve.bytes[0]
    return curve.time(bytes)


def _latency_floor(tier: Tier) -> float:
    lat, bw = tier.curve("oneway"), tier.curve("uni")
    if len(lat.bytes) == 1 and bw:
        return max(0, lat.sec[0] - lat.bytes[0] * bw.beta)
    return lat.floor()


def tier_time(tier: Tier, bytes: float, factor: float = 1) -> float:
    """Seconds of a pair of this tier at that share of its bandwidth (src/matrix/matrix.c)."""
    if not factor > 0:
        return inf
    lat, bw = tier.curve("oneway"), tier.curve("uni")
    bw_floor, lat_floor = bw.floor(), _latency_floor(tier)
    if not lat:
        return _stretched(bw_floor, bw.time(bytes), factor)
    if not bw:
        return _stretched(lat_floor, lat.time(bytes), factor)
    last = lat.bytes[-1]
    sec = _stretched(lat_floor, lat.time(min(bytes, last)), factor)
    message = _stretched(bw_floor, _bandwidth_time(bw, bytes), factor)
    if bytes > last:
        sec += most(0, message - _stretched(bw_floor, _bandwidth_time(bw, last), factor))
    return most(sec, message)


# --- collectives that were measured ---

class Shape(NamedTuple):
    """Shape of a group."""

    ranks: int
    domains: int
    per_domain: int  #: of the domain that has the fewest
    nodes: int
    nics: int
    racks: int  #: 0: not visible, or any


class Collective(NamedTuple):
    """A curve of one operation on groups of one shape."""

    op: str
    shape: Shape
    basis: str
    curve: Curve


# --- parts (src/matrix/matrix.c) ---

#: part of an exception: the level of its groups; None: an endpoint, or two
PART_LEVEL = {"endpoint": None, "host": "host", "rack_pair": "rack", "pair": None, "leaf": "leaf", "rack": "rack",
              "rack_uplinks": "rack"}


@dataclass(frozen=True)
class Part:
    """A part that differs from its tier."""

    part: str
    side: str
    a: int
    b: int  #: -1 where a part is one
    tier: int  #: -1: every tier that crosses NICs; every tier when dead
    factor: float  #: bandwidth, of its tier's; 0: dead
    alpha_add: float  #: s, added one way
    row: dict = field(default_factory=dict)

    def two(self) -> bool:
        return self.part in ("pair", "rack_pair")


def part_at(m: Matrix, part: str, endpoint: int) -> int:
    level = PART_LEVEL[part]
    return endpoint if level is None else m.places.at[level][endpoint]


def crosses(m: Matrix, e: Part, src: int, dst: int, tier: int) -> bool:
    """Does src -> dst, a pair of this tier, cross the part?"""
    if e.tier != tier if e.tier >= 0 else not m.tier[tier].nic and e.factor > 0:
        return False
    x, y = part_at(m, e.part, src), part_at(m, e.part, dst)
    tx, rx = e.side != "rx", e.side != "tx"
    if e.two():
        return (tx and x == e.a and y == e.b) or (rx and x == e.b and y == e.a)
    if e.part == "rack_uplinks" and (x < 0 or y < 0 or x == y):
        return False
    return (tx and x == e.a) or (rx and y == e.a)
