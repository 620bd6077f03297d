# SPDX-License-Identifier: BSD-3-Clause
"""What NCCL's algorithms and protocols make of a collective: the arithmetic of src/matrix/algorithm.c, where the tables have
their sources.  A line is (seconds of latency, B/s of the buffer, bytes that fill the pipeline, at most so many)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple, Sequence

from .price import Op, inf, least, nan

US, GB, MB = 1e-6, 1e9, 1e6
HOP_LL, PEER, WINDOW = 1.0e-6, 0.3e-6, 8 * 131072.0
NVLINK = 30e9
OWN, TREE, PAT = range(3)  #: schedules, which differ in the edges between domains
_NCCL = 22809


class Line(NamedTuple):
    latency: float
    rate: float
    fill: float = 0
    most: float = 0
    schedule: int = 0  #: ring, tree, PAT

    def time(self, bytes: float) -> float:
        """Seconds."""
        if self.rate > 0 or math.isnan(self.rate):
            return self.latency + (bytes + self.filled(bytes)) / self.rate
        return inf

    def filled(self, bytes: float) -> float:
        """Bytes that fill the pipeline."""
        return least(math.sqrt(self.fill * bytes), self.most) if self.fill > 0 else 0


@dataclass
class Group:
    """What the lines depend on."""

    model: str
    nccl: int
    ranks: int
    domains: int
    widest: int
    nvlink: bool = False
    inside: float = inf
    ring: float = inf
    tree: float = inf
    pat: float = inf
    hop_in: float = 0
    hop_out: float = 0
    add: Sequence[float] = (0, 0, 0)  #: by schedule


class _Gpu(NamedTuple):
    hop: float
    ring: float
    ll: float
    nvls: float
    gather: float
    two: float
    tree: Sequence[float]
    tree128: Sequence[float]


_GPU = {
    "other": _Gpu(1, 1, 141, 0, 0, 0, (38.7, 38.7, 36), (36.7, 36.7, 29)),
    "volta": _Gpu(1.6, 1, 39, 0, 0, 0, (26.5, 18.5, 10), (20, 20, 20)),
    "ampere": _Gpu(1.6, 0.95, 87.7, 0, 0, 0, (24, 23.6, 17.8), (20, 20, 20)),
    "hopper": _Gpu(1, 0.92, 141, 0.74, 0.74, 0.92, (38.7, 38.7, 36), (36.7, 36.7, 29)),
    "blackwell": _Gpu(2.2, 0.82, 282, 0.60, 0.72, 0.92, (70, 42.8, 24), (55.6, 31.7, 20)),
}
_KNOWN = (("B200", "blackwell"), ("B300", "blackwell"), ("B100", "blackwell"), ("PRO 6000", "blackwell"), ("H100", "hopper"),
          ("H200", "hopper"), ("H20", "hopper"), ("H800", "hopper"), ("A100", "ampere"), ("A800", "ampere"),
          ("L40", "ampere"), ("V100", "volta"), ("Instinct", "other"), ("MI300", "other"))
#: since, PAT, hop of an NVLS tree, what one keeps of Hopper and of Blackwell, channel of a Blackwell tree
_VERSIONS = ((21903, False, 14, 0.79, 0.79, 36), (22304, True, 14, 0.79, 0.79, 36), (22602, True, 14, 0.79, 0.79, 72),
             (22803, True, 20.9, 0.79, 0.456, 24), (23003, True, 20.9, 0.79, 0.83, 24))

#: LL, LL128, Simple
_BASE_TREE, _BASE_RING = (6.8, 14, 8.4), (6.6, 14, 8.4)
_IN_TREE = {True: (0.6, 1.25, 4), False: (1, 1.9, 4)}  # NVLink, PCIe
_IN_RING = {True: (0.6, 1.9, 3.4), False: (1, 2.5, 5.7)}
_NET_TREE, _NET_RING, _NET_POST = (5, 8.5, 14), (2.7, 4, 14), (1, 1, 3)
_RING_SHARE, _TREE_SHARE = (0.5, 0.92, 1), (0.25, 0.9, 1)
_TREE_FILL = (0.02e6, 1.5e6, 1.5e6)
_LL_NET = (39, 20.4)
_CHANNELS, _PLATEAU, _NET, _SPREAD = 16, 1.4, 0.96, 0.9


def load(domains: int) -> float:
    """What leaves a domain in the double tree, times the buffer."""
    return 1 if domains <= 2 else 1.5 if domains == 3 else 2


def parent(place: int, domains: int) -> int:
    """In NCCL's binary tree; 0 is above all."""
    low = place & -place
    up = (place ^ low) | low << 1
    return up if up < domains else place ^ low


def place(at: int, domains: int, second: bool) -> int:
    """Domain at a place of the first or the second tree."""
    return at if not second else (at + 1) % domains if domains % 2 else domains - 1 - at


def stream(bytes: float) -> float:
    """Bytes that the time of a message to a peer over NICs is of."""
    return bytes + bytes * WINDOW / (bytes + WINDOW)


def version(text: object) -> int:
    """22902 of "2.29.2 (path)"; 0: not told."""
    words = text.split(" ")[0].split(".") if isinstance(text, str) else []
    part = [int(w) if w.isdigit() else 0 for w in words[:3]] + [0, 0, 0]
    return part[0] * 10000 + part[1] * 100 + part[2]


def generation(model: str) -> str:
    at = [(model.find(head), i) for i, (head, _) in enumerate(_KNOWN) if head in model]
    return _KNOWN[min(at)[1]][1] if at else "other"


def _of_domains(domains: int, two: float, more: float) -> float:
    """Between the columns of two and of more domains."""
    return two * (more / two) ** min(1, math.log2(domains / 2) / math.log2(5)) if domains > 2 else two


class _Writing:
    def __init__(self, g: Group):
        self.g, self.lines = g, []
        self.generation = generation(g.model)
        self.gpu = _GPU[self.generation]
        self.version = max((v for v in _VERSIONS if v[0] <= (g.nccl or _NCCL)), default=_VERSIONS[0])
        self.per = g.ranks / g.domains
        self.slower = 2 * max(0, g.hop_out - 5.5 * US)

    def add(self, latency: float, rate: float, fill: float = 0, most: float = 0, schedule: int = 0) -> None:
        floor = max(self.g.hop_in, self.g.hop_out) if self.g.domains > 1 else 0
        self.lines.append(Line(max(latency, floor) + self.g.add[schedule], rate, fill, most, schedule))

    def hop(self, table: dict, p: int) -> float:
        hop = table[self.g.nvlink][p] * US * (self.gpu.hop if p < 2 else 1)
        return min(hop, self.g.hop_in) if self.g.hop_in > 0 else hop

    def later(self, p: int) -> float:
        """What a hop across takes longer than over InfiniBand."""
        return self.slower * (3 if p else 1)

    def rings(self, op: Op) -> None:
        g, n, d = self.g, self.g.ranks, self.g.domains
        bus = min(g.inside * self.gpu.ring, g.ring)
        for p in range(3):
            inside, out = self.hop(_IN_RING, p), _NET_RING[p] * US + self.later(p)
            if d > 1:
                inside = max(inside, _NET_POST[p] * US)
            latency = _BASE_RING[p] * US + op.turns * ((n - d) * inside + (d - 1) * out)
            if p == 2 and op.turns > 1 and d > 1:
                latency *= _PLATEAU
            rate = bus * _RING_SHARE[p]
            if p == 0:
                rate = min(rate, (self.gpu.ll if d == 1 else _of_domains(d, *_LL_NET)) * GB)
            self.add(latency, rate / op.bus_factor(n))

    def spread(self, inside: float, out: float, head: float = 0) -> float:
        def latency(per: float, levels: float) -> float:
            return 2 * ((per - 1) * inside + levels * out + min(1, levels) * head * max(0, per - 8))

        dense = min(self.g.ranks, max(self.per, self.g.widest))
        levels = math.log2(self.g.ranks / dense)
        halvings = math.log2(dense / self.per) - (0 if levels > 0 else 1)
        return max(_SPREAD ** max(0, halvings) * latency(dense, levels), latency(self.per, math.log2(self.g.domains)))

    def trees(self) -> None:
        g, d = self.g, self.g.domains
        levels = math.log2(2.0 * d)
        for p in range(3):
            inside, out = self.hop(_IN_TREE, p), _NET_TREE[p] * US + self.later(p)
            cap = self.gpu.tree128 if p < 2 else self.gpu.tree
            more = self.version[5] if p == 2 and self.generation == "blackwell" else cap[2]
            best = self.gpu.ll if not p else _CHANNELS * cap[0]
            if d > 1:
                best = _CHANNELS * _of_domains(d, cap[1], more) if p else _of_domains(d, *_LL_NET)
            rate = min(g.inside / 2, _NET * g.tree / load(d))
            fill = _TREE_FILL[p] * levels * levels
            self.add(_BASE_TREE[p] * US + self.spread(inside, out), min(rate * _TREE_SHARE[p], best * GB / 2), fill,
                     20 * fill, TREE)

    def nvls(self, name: str, op: Op) -> None:
        g, heads, alone = self.g, max(0, self.per - 8), self.g.domains == 1
        total = name == "all_reduce"
        if not self.gpu.nvls or not g.nvlink or self.per < 4 or op.whole or (not alone and not total):
            return
        inside = (25 + 0.5 * heads) * US
        rate = (self.gpu.nvls if total else self.gpu.gather) * g.inside
        if not alone:
            inside += self.spread(0, self.version[2] * US + self.later(2), 0.8 * US)
            more = self.version[3] if self.generation == "hopper" else self.version[4]
            rate = min(rate * self.gpu.two * _of_domains(g.domains, 1, more), _NET * g.tree / load(g.domains))
        self.add(inside, rate, 1.5 * MB * self.per if total else 0, 4.3 * MB * self.per if total else 0,
                 0 if alone else TREE)

    def pat(self, name: str) -> None:
        n, hop = self.g.ranks, _NET_TREE[2] * US + self.later(2)
        if not self.version[1] or n != self.g.domains or name not in ("all_gather", "reduce_scatter"):
            return
        ring = n / 2 * _NET_POST[0] + (n / 2 - 1) * _NET_RING[0]
        floor = _SPREAD * (_BASE_RING[0] * US + ring * US + (n / 2 - 1) * self.later(1))
        latency = 8 * US + math.log2(n) * hop / 3.5 + 2.8 * US * n
        self.add(max(latency, floor) if self.g.widest > 1 else latency, 0.75 * self.g.pat * n / (n - 1),
                 schedule=PAT)


def lines(g: Group, name: str, op: Op) -> list[Line]:
    """The lines of an operation that goes along rings."""
    if any(map(math.isnan, (g.inside, g.ring, g.tree, g.pat))):
        return [Line(0, nan)]
    w = _Writing(g)
    w.rings(op)
    if name == "all_reduce":
        w.trees()
    w.nvls(name, op)
    w.pat(name)
    return w.lines


def further(hops: float, full: float, moving: float) -> float:
    """Further hops of a ring inside a domain, and moving: the fastest protocol's."""
    if math.isnan(full):
        return nan
    return min(hops * cost + max(moving, full / share) for cost, share in ((HOP_LL, 0.25), (1.9e-6, 0.92), (3.4e-6, 1.0)))
