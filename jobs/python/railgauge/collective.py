# SPDX-License-Identifier: BSD-3-Clause
"""What a collective costs by a cost matrix: the arithmetic of the C library (src/matrix), where each formula has its
source.  Bytes, seconds; nan: unknown, inf: a part on the way is dead."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Iterator, NamedTuple, Optional, Sequence

from . import algorithm
from .algorithm import PEER as _PEER
from .price import OPS, Curve, Op, Part, Tier, crosses, div, inf, least, most, nan, part_at, unsure

if TYPE_CHECKING:
    from .matrix import Matrix

# --- a group: its shape and the ways of its traffic (src/matrix/shape.c, model.c) ---

class Shape(NamedTuple):
    ranks: int
    domains: int
    per_domain: int  #: of the domain that has the fewest
    nodes: int
    nics: int
    racks: int  #: 0: not visible, or any


@dataclass
class Ways:
    shape: Shape
    inner: int = -1  #: slowest tier inside a domain, and between domains; -1: none
    outer: int = -1
    crossings: int = 0
    at_once: int = 1
    share: list[float] = field(default_factory=list)
    inner_factor: float = 1
    outer_factor: list[float] = field(default_factory=lambda: [1.0, 1.0, 1.0])  #: by schedule, as alpha_add
    alpha_add: list[float] = field(default_factory=lambda: [0.0, 0.0, 0.0])
    slowed: bool = False

    def healthy(self) -> Ways:
        return replace(self, inner_factor=1, outer_factor=[1.0] * 3, alpha_add=[0.0] * 3, slowed=False)


def _domain(m: Matrix, id: int) -> int:
    at = m.places.at
    return at["domain"][id] if at["domain"][id] >= 0 else len(m.places.names["domain"]) + at["host"][id]


def _nic(m: Matrix, id: int) -> int:
    p = m.places
    if p.nearest[id] >= 0:
        return p.nearest[id]
    return len(p.nics) + (len(p.names["host"]) + id if p.kind[id] == "gpu" else p.at["host"][id])


def shape_of(m: Matrix, ids: Sequence[int]) -> Shape:
    at = m.places.at
    domains = Counter(_domain(m, id) for id in ids)
    fewest = min(domains.values())
    nics = len({_nic(m, id) for id in ids}) // len(domains)
    racks = {at["rack"][id] for id in ids}
    return Shape(len(ids), len(domains), fewest, len({at["host"][id] for id in ids}), max(1, min(nics, fewest)),
                 0 if -1 in racks else len(racks))


def _same_domain(m: Matrix, a: int, b: int) -> bool:
    domain, host = m.places.at["domain"], m.places.at["host"]
    if domain[a] >= 0 and domain[b] >= 0:
        return domain[a] == domain[b]
    return host[a] == host[b]


def _slower(m: Matrix, kept: int, tier: int) -> int:
    def pace(tier: int) -> tuple[float, int]:  # what is not known is slower than everything
        rate = m.tier[tier].rate()
        return (0.0 if math.isnan(rate) else rate, -tier)

    return tier if kept < 0 else min(kept, tier, key=pace)


def _loneliest(m: Matrix, shape: Shape, ids: Sequence[int]) -> int:
    if len(ids) == shape.domains * shape.per_domain:
        return 0
    for i, id in enumerate(ids):
        if i and _same_domain(m, ids[i - 1], id):
            continue
        if sum(_same_domain(m, id, other) for other in ids) == shape.per_domain:
            return i
    return 0


def _inside_tier(m: Matrix, ids: Sequence[int], domains: int) -> int:
    n = len(ids)
    pairs = [(i, i - domains) for i in range(domains, n)]
    for i, k in (*pairs, *((i, k) for i in range(1, n) for k in range(i))):
        if ids[i] != ids[k] and _same_domain(m, ids[i], ids[k]):
            return m.places.tier(ids[i], ids[k])
    return -1


def _hops(w: Ways, m: Matrix, ids: Sequence[int]) -> None:
    n, alone, rack = len(ids), _loneliest(m, w.shape, ids), m.places.at["rack"]
    ring = [(a, b, m.places.tier(a, b)) for a, b in zip(ids, [*ids[1:], ids[0]]) if a != b]
    for a, b, tier in ring:
        if _same_domain(m, a, b):
            w.inner = _slower(m, w.inner, tier)
        else:
            w.outer = _slower(m, w.outer, tier)
    count = [0] * len(m.tier)
    for i, id in enumerate(ids):
        if i != alone:
            count[m.places.tier(ids[alone], id) if id != ids[alone] else 0] += 1
    w.share = [met / (n - 1) for met in count]
    if w.inner < 0 and w.shape.domains < n:
        w.inner = _inside_tier(m, ids, w.shape.domains)
    w.crossings = sum(rack[a] != rack[b] and tier == w.outer for a, b, tier in ring)


# --- which slow parts the schedule of an operation crosses (src/matrix/model.c) ---

def _touches(m: Matrix, e: Part, id: int) -> bool:
    at = part_at(m, e.part, id)
    return at == e.a or (e.b >= 0 and at == e.b)


def _has_members(m: Matrix, e: Part, ids: Sequence[int]) -> bool:
    at = [part_at(m, e.part, id) for id in ids]
    if e.part == "rack_uplinks":
        return 0 < at.count(e.a) < len(ids)
    return e.a in at and (not e.two() or e.b in at)


def _concerns(m: Matrix, e: Part, tier: int) -> bool:
    return tier >= 0 and (e.tier == tier if e.tier >= 0 else m.tier[tier].nic or e.factor <= 0)


def _runs(m: Matrix, ids: Sequence[int]) -> list[list[int]]:
    """Consecutive members that share a domain, from the first border on."""
    n, runs = len(ids), []
    first = next((i for i in range(1, n) if not _same_domain(m, ids[i - 1], ids[i])), n)
    for k in range(first, first + n):
        if k == first or not _same_domain(m, ids[(k - 1) % n], ids[k % n]):
            runs.append([])
        runs[-1].append(ids[k % n])
    return runs


def _flows(m: Matrix, ids: Sequence[int], op: Op) -> Iterator[tuple[int, int]]:
    hops = list(zip(ids, [*ids[1:], ids[0]]))
    if op.links == "next":
        yield from hops
        return
    for a, b in hops:  # inside a domain; channels start at different members
        if _same_domain(m, a, b):
            yield from ((a, b), (b, a))
    runs = _runs(m, ids)
    for run, after in zip(runs, [*runs[1:], runs[0]]) if len(runs) > 1 else ():  # a channel for each NIC
        yield from ((a, after[k % len(after)]) for k, a in enumerate(run))


def _trees(m: Matrix, ids: Sequence[int]) -> Iterator[tuple[int, int]]:
    by: dict[int, list[int]] = {}
    for id in ids:
        by.setdefault(_domain(m, id), []).append(id)
    domains, n = list(by.values()), len(by)
    for second in (False, True):
        for i in range(1, n):
            a = domains[algorithm.place(i, n, second)]
            b = domains[algorithm.place(algorithm.parent(i, n), n, second)]
            for k in range(max(len(a), len(b))):
                yield from ((a[k % len(a)], b[k % len(b)]), (b[k % len(b)], a[k % len(a)]))


def _pat(ids: Sequence[int]) -> Iterator[tuple[int, int]]:
    far = 1
    while far < len(ids):
        for i, a in enumerate(ids):
            yield from ((a, ids[(i + far) % len(ids)]), (ids[(i + far) % len(ids)], a))
        far *= 2


def _schedules(m: Matrix, w: Ways, e: Part, ids: Sequence[int], op: Op) -> list[tuple[bool, bool]]:
    """_crossed() of the ring or only schedule, of trees, of PAT."""
    own = _crossed(m, w, e, ids, op)
    any = not e.two() and (e.tier < 0 or (not m.tier[e.tier].nic and e.tier == w.inner))
    if op.links != "ring" or any:
        return [own, own, own]
    tree = w.outer >= 0 and _outside(m, e, _trees(m, ids))
    pat = w.outer >= 0 and w.shape.domains == w.shape.ranks and _outside(m, e, _pat(ids))
    return [own, (own[0], tree), (own[0], pat)]


def _outside(m: Matrix, e: Part, flows: Iterator[tuple[int, int]]) -> bool:
    return any(a != b and not _same_domain(m, a, b) and (_touches(m, e, a) or _touches(m, e, b))
               and crosses(m, e, a, b, m.places.tier(a, b)) for a, b in flows)


def _crossed(m: Matrix, w: Ways, e: Part, ids: Sequence[int], op: Op) -> tuple[bool, bool]:
    """Inside a domain, between domains."""
    if op.links == "exchange":
        if e.part == "pair":
            inside, tier = _same_domain(m, e.a, e.b), m.places.tier(e.a, e.b)
            slow = crosses(m, e, e.a, e.b, tier) or crosses(m, e, e.b, e.a, tier)
            return slow and inside, slow and not inside
        if e.two():
            return False, True
        met = [w.outer >= 0 and (tier.nic or t == w.outer) for t, tier in enumerate(m.tier)
               if w.share[t] > 0 and _concerns(m, e, t)]
        return False in met, True in met
    if op.links == "ring" and not e.two() and (e.tier < 0 or (not m.tier[e.tier].nic and e.tier == w.inner)):
        return _concerns(m, e, w.inner), _concerns(m, e, w.outer)
    crossed = [_same_domain(m, a, b) for a, b in _flows(m, ids, op)
               if a != b and (_touches(m, e, a) or _touches(m, e, b)) and crosses(m, e, a, b, m.places.tier(a, b))]
    return True in crossed, False in crossed


def _left_of_tier(m: Matrix, e: Part, slowest: int) -> float:
    pace = 0.0 if slowest < 0 else m.tier[slowest].rate()
    if e.tier < 0 or slowest < 0 or e.tier == slowest or not pace > 0:
        return e.factor
    own = m.tier[e.tier].rate()
    return least(1, e.factor * (0.0 if math.isnan(own) else own) / pace)


def _slow_part(w: Ways, m: Matrix, e: Part, crossed: Sequence[tuple[bool, bool]]) -> None:
    inner = w.inner_factor
    if crossed[0][0]:
        w.inner_factor = min(inner, _left_of_tier(m, e, w.inner))
    for s, (inside, outside) in enumerate(crossed):
        if not inside and not outside:
            continue
        before, add = min(inner, w.outer_factor[s]), w.alpha_add[s]
        if outside:
            w.outer_factor[s] = min(w.outer_factor[s], _left_of_tier(m, e, w.outer))
        w.alpha_add[s] = max(add, e.alpha_add)
        w.slowed = w.slowed or min(w.inner_factor, w.outer_factor[s]) < before or w.alpha_add[s] > add


def ways_of(m: Matrix, ids: Sequence[int], op: Op) -> Ways:
    """The ways that a group's traffic takes, and what slows them."""
    ids = list(ids)
    w = Ways(shape_of(m, ids))
    _hops(w, m, ids)
    for e in m.exception:
        if not _has_members(m, e, ids):
            continue
        _slow_part(w, m, e, _schedules(m, w, e, ids, op))
    return w


def _ways_near(m: Matrix, w: Ways) -> Optional[Ways]:
    """As many ranks inside one healthy domain; None: no domain has so many endpoints."""
    n, domains = w.shape.ranks, len(m.places.names["domain"]) or len(m.places.names["host"])
    if w.shape.domains == 1 or n > (m.places.count // domains if domains else 1):
        return None
    near = replace(w.healthy(), shape=Shape(n, 1, n, 1, n, 1), outer=-1, crossings=0)
    if near.inner < 0:
        near.inner = _inner_tier(m)
    if near.inner < 0:
        return None
    near.share = [float(t == near.inner) for t in range(len(m.tier))]
    return near


def _ways_few(m: Matrix, w: Ways) -> Optional[Ways]:
    """As many ranks in as few domains as hold them, two at least; None: these are so few."""
    s, all = w.shape, len(m.places.names["domain"]) or len(m.places.names["host"])
    domains = max(2, math.ceil(s.ranks / (m.places.count // all if all else 1)))
    if domains >= s.domains:
        return None
    per = s.ranks // domains
    few = replace(w.healthy(), shape=Shape(s.ranks, domains, per, s.nodes, min(s.nics * s.domains // domains, per),
                                           min(s.racks, domains)), crossings=min(w.crossings, domains))
    if few.inner < 0:
        few.inner = _inner_tier(m)
    if few.inner < 0:
        return None
    inside = (per - 1) / (s.ranks - 1)
    few.share = [0.0] * len(w.share)
    few.share[few.inner] = inside
    few.share[few.outer] += 1 - inside
    return few


# --- the model: what the tiers alone make of a collective (src/matrix/model.c) ---

def _hop_alpha(m: Matrix, tier: int) -> float:
    lat = m.tier[tier].curve("oneway")
    return lat.alpha if lat else m.tier[tier].curve("uni").floor()


def _uplinks(m: Matrix, w: Ways, tier: Tier) -> float:
    names = m.places.names
    racks, rails = len(names["rack"]), len(names["rail"])
    if not names["leaf"] or racks < 1 or w.shape.racks < 1:
        return nan
    part = min(1, w.shape.nics / rails) if rails else 1
    return tier.loaded * m.places.count * part * w.shape.racks / racks


def _share_of(m: Matrix, w: Ways, tier: Tier, flows: float, nics: float) -> float:
    if not tier.loaded < 1:
        return 1
    room = _uplinks(m, w, tier)
    if not math.isnan(room):
        return least(1, most(tier.loaded, div(room, nics * w.at_once)))
    return 1 if flows * w.at_once <= 1 else most(tier.loaded, 1 / (flows * w.at_once))


def _outer_rate(m: Matrix, w: Ways, nics: int, more: float = 1, schedule: int = 0) -> float:
    flows = w.crossings / w.shape.racks if w.shape.racks > 1 else 1
    tier = m.tier[w.outer]
    return tier.rate() * w.outer_factor[schedule] * _share_of(m, w, tier, flows * more, w.crossings * nics * more)


def _ring_rate(m: Matrix, w: Ways) -> float:
    rate = inf
    if w.inner >= 0:
        rate = m.tier[w.inner].rate() * w.inner_factor
    if w.outer >= 0:
        across = w.shape.nics * _outer_rate(m, w, w.shape.nics)
        rate = across if math.isnan(across) or across < rate else rate
    return rate


def _tree_climbs(s: Shape) -> float:
    if s.racks < 2 or s.racks >= s.domains:
        return 1
    return max(1, (2 if s.racks < 4 else 3) / algorithm.load(s.domains))


def _group(m: Matrix, w: Ways) -> algorithm.Group:
    names, s = m.places.names, w.shape
    domains = len(names["domain"]) or len(names["host"])
    g = algorithm.Group(m.places.model[0] or "", algorithm.version((m.provenance or {}).get("nccl")), s.ranks, s.domains,
                        m.places.count // domains if domains else 1, add=w.alpha_add)
    if w.inner >= 0:
        rate = m.tier[w.inner].rate()
        g.nvlink, g.inside, g.hop_in = rate >= algorithm.NVLINK, rate * w.inner_factor, _hop_alpha(m, w.inner)
    if w.outer >= 0:
        g.ring = s.nics * _outer_rate(m, w, s.nics)
        g.tree = s.nics * _outer_rate(m, w, s.nics, _tree_climbs(s), algorithm.TREE)
        g.pat = s.nics * _outer_rate(m, w, s.nics, 1, algorithm.PAT)
        g.hop_out = _hop_alpha(m, w.outer)
    return g


def _chain(m: Matrix, w: Ways, op: Op) -> list[algorithm.Line]:
    """One hop after the other: what MPI makes of a ring."""
    inner = _hop_alpha(m, w.inner) if w.inner >= 0 else 0
    outer = _hop_alpha(m, w.outer) if w.outer >= 0 else 0
    n, crossings = w.shape.ranks, 0 if w.outer < 0 else w.shape.domains - 1
    latency = op.turns * ((n - 1 - crossings) * inner + crossings * outer + w.alpha_add[0])
    share = 1 if op.whole else (n - 1) / n
    return [algorithm.Line(latency, div(div(_ring_rate(m, w), share), op.turns))]


def _nccl(m: Matrix) -> bool:
    return m.of_gpus and m.transport != "mpi"


def _lines(m: Matrix, w: Ways, name: str, op: Op) -> list[algorithm.Line]:
    return algorithm.lines(_group(m, w), name, op) if _nccl(m) else _chain(m, w, op)


def _message_alpha(m: Matrix, w: Ways, tier: int) -> float:
    inner = _inner_tier(m) if _nccl(m) and tier != w.inner else -1
    return most(_hop_alpha(m, tier), _hop_alpha(m, inner)) if inner >= 0 else _hop_alpha(m, tier)


def _all_to_all_time(m: Matrix, w: Ways, bytes: float) -> float:
    inside = across = alpha = 0.0
    n, per_rank = w.shape.ranks, w.shape.nics / w.shape.per_domain
    for t, tier in enumerate(m.tier):
        if not w.share[t] > 0:
            continue
        rate = tier.rate()
        if w.outer >= 0 and (tier.nic or t == w.outer):
            share = _share_of(m, w, tier, n * w.share[t], n)
            each = algorithm.stream(bytes / n) if _nccl(m) else bytes / n
            across += div(each * (n - 1) * w.share[t], rate * w.outer_factor[0] * share * min(1, per_rank))
        else:
            inside += div(bytes / n * (n - 1) * w.share[t], rate * w.inner_factor)
        peer = _PEER if m.of_gpus else tier.curve("uni").floor()
        alpha = most(alpha, _message_alpha(m, w, t) + peer * (n - 2))
    return alpha + w.alpha_add[0] + (nan if math.isnan(inside) or math.isnan(across) else max(inside, across))


def _sendrecv_time(m: Matrix, w: Ways, bytes: float) -> float:
    inner = outer = 0.0
    if w.inner >= 0:
        inner = _hop_alpha(m, w.inner) + div(bytes, m.tier[w.inner].rate() * w.inner_factor)
    if w.outer >= 0:
        outer = _message_alpha(m, w, w.outer) + div(bytes, _outer_rate(m, w, 1))
    return w.alpha_add[0] + (nan if math.isnan(inner) or math.isnan(outer) else max(inner, outer))


class Model:
    """What the model makes of these ways at any size."""

    def __init__(self, m: Matrix, w: Ways, name: str):
        self.m, self.w, self.op = m, w, OPS[name]
        self.dead = w.inner_factor <= 0 or (w.outer_factor[0] <= 0 and not (_nccl(m) and self.op.links == "ring"))
        self.lines = _lines(m, w, name, self.op) if self.op.links == "ring" and not self.dead else []

    def time(self, bytes: float) -> float:
        """Seconds; nan when a tier that is needed has no curve, inf when a part is dead."""
        if self.dead:
            return inf
        if self.op.links == "exchange":
            return _all_to_all_time(self.m, self.w, bytes)
        if self.op.links == "next":
            return _sendrecv_time(self.m, self.w, bytes)
        times = [line.time(bytes) for line in self.lines]
        return times[0] if math.isnan(times[0]) else least(*times)

    def slower(self, healthy: Model, bytes: float) -> tuple[float, float]:
        """Factor on a time and seconds added by slow parts; inf where the schedule that the healthy group runs is dead."""
        if self.dead:
            return inf, 0
        if self.op.links != "ring":
            add = self.w.alpha_add[0]
            return div(self.time(bytes) - add, healthy.time(bytes)), add
        times, slow = [line.time(bytes) for line in healthy.lines], [line.time(bytes) for line in self.lines]
        at = 0 if math.isnan(times[0]) else times.index(min(times))
        if math.isinf(slow[at]):
            return inf, 0
        by = 0 if math.isnan(slow[0]) else slow.index(min(slow))
        add = self.w.alpha_add[self.lines[by].schedule] * (1 if _nccl(self.m) else self.op.turns)
        return div(slow[by] - add, times[at]), add


# --- what curves of other shapes between domains say (struct join of src/matrix/collective.h) ---

_KNOTS = (0, 0.5, 1, 1.5, 2, 3, 4, 6, 8)
_VOTE, _HOLD, _REACH, _RISES, _POINTS, _SAME = 0.05, 3, 1, 0.3, 12, 4.33


def _log2(x: float) -> float:
    return math.log2(x) if x > 0 and math.isfinite(x) else inf if x > 0 else -inf if x == 0 else nan


def _inner_tier(m: Matrix) -> int:
    inner = -1
    for t, tier in enumerate(m.tier):
        if {"host", "domain"} & set(tier.same):
            inner = _slower(m, inner, t)
    return inner


def _octaves(a: float, b: float) -> float:
    return abs(math.log2(a / b))


def _distance(a: Shape, b: Shape) -> float:
    return (_octaves(a.ranks / a.domains, b.ranks / b.domains) + _octaves(a.domains, b.domains)
            + _octaves(a.nics, b.nics) / 2 + ((a.domains > 2) != (b.domains > 2)))


def _error(op: str, octaves: float, weight: float, far: float) -> float:
    octaves = most(0, octaves)
    alone = 0.10 if octaves < 0.5 else 0.40 if octaves < 3 else 0.20
    alone *= 0.7 if op in ("all_gather", "reduce_scatter", "all_to_all") else 1
    return math.exp(1.28 * (math.sqrt(alone * alone * 0.35 / (0.35 + weight) + 0.11 ** 2) + 0.03 * min(5, far))) - 1


class Join:
    def __init__(self, m: Matrix, name: str, w: Ways, model: Model):
        others = [c for c in m.collective_curves if c.op == name and c.shape.domains > 1 and c.curve]
        gap = min((math.log2(w.shape.domains / c.shape.domains) for c in others), default=inf)
        beyond = max(0, gap - _REACH)
        self.op, self.base, self.curves = name, _log2(model.time(0)), 0
        sums = [[0.0] * 5 for _ in _KNOTS]
        for c in others:
            points = self._look(c, Model(m, self._ways(m, w, c), name))
            if not points:
                continue
            self.curves += 1
            far = _distance(w.shape, c.shape)
            x = max(-6, math.log2(c.shape.domains / w.shape.domains) + beyond)
            weight = 2.0 ** (-far / 2) * (1 + _RISES) / (far + _RISES)
            for total, knot in zip(sums, _KNOTS):
                y, out = self._miss(points, knot)
                left = 1 / (1 + out / 2)
                v = weight * left * left
                for i, term in enumerate((v, v * x, v * x * x, v * y, v * x * y)):
                    total[i] += term
        self.far = min((_distance(w.shape, c.shape) for c in others), default=0.0)
        self.weight = [v for v, *_ in sums]
        self.miss: list[float] = []
        for k, (v, vx, vxx, vy, vxy) in enumerate(sums):
            all, xx = v + _VOTE, vxx + _HOLD
            miss = (xx * vy - vx * vxy) / (all * xx - vx * vx)
            self.miss.append(max(miss, self.miss[-1] - (_KNOTS[k] - _KNOTS[k - 1])) if k else miss)

    @staticmethod
    def _ways(m: Matrix, w: Ways, c: Collective) -> Ways:
        v = replace(w.healthy(), shape=c.shape, crossings=c.crossings, at_once=max(1, c.at_once))
        if c.shape.per_domain > 1 and v.inner < 0:
            v.inner = _inner_tier(m)
        if c.shape.per_domain < 2:
            v.inner = -1
        inside = (c.shape.per_domain - 1) / (c.shape.ranks - 1)
        v.share = [0.0] * len(w.share)
        if v.inner >= 0:
            v.share[v.inner] = inside
        v.share[v.outer] = 1 - inside
        return v

    @staticmethod
    def _look(c: Collective, model: Model) -> list[tuple[float, float]]:
        """(octaves of the model beyond its latency, log2 of measured / modelled), from the largest size down."""
        n = len(c.curve.bytes)
        base, points = _log2(model.time(0)), []
        for i in range(n - 1, -1, -((n + _POINTS - 1) // _POINTS)):
            at = _log2(model.time(c.curve.bytes[i]))
            points.append((at - base, _log2(c.curve.sec[i]) - at))
        miss = [y for _, y in points]
        if not all(math.isfinite(y) for y in miss):
            return []
        return [(x, sorted(miss[i - 1:i + 2])[1] if 0 < i < len(miss) - 1 else y) for i, (x, y) in enumerate(points)]

    @staticmethod
    def _miss(p: list[tuple[float, float]], at: float) -> tuple[float, float]:
        beyond = max(0, at - p[0][0], p[-1][0] - at)
        if at >= p[0][0]:
            return p[0][1], beyond
        for a, b in zip(p, p[1:]):
            if at >= b[0]:
                part = (at - b[0]) / (a[0] - b[0])
                return b[1] + part * (a[1] - b[1]), beyond
        return p[-1][1], beyond

    def _around(self, sec: float) -> tuple[int, float]:
        at, k = _log2(sec) - self.base, 0
        while k + 2 < len(_KNOTS) and at >= _KNOTS[k + 1]:
            k += 1
        return k, min(1, max(0, (at - _KNOTS[k]) / (_KNOTS[k + 1] - _KNOTS[k])))

    def error(self, sec: float) -> float:
        """Half-width of the interval of nine in ten, as a share."""
        weight = self.weight[self._around(sec)[0]] if self.curves else 0
        return _error(self.op, _log2(sec) - self.base, weight, self.far if self.curves else 0)

    def time(self, sec: float) -> float:
        if not self.curves or not math.isfinite(sec):
            return sec
        k, part = self._around(sec)
        return sec * 2.0 ** (self.miss[k] + part * (self.miss[k + 1] - self.miss[k]))


# --- which curve answers: the group's own shape's, its neighbours', or the model (src/matrix/collective.c) ---

@dataclass(frozen=True)
class Collective:
    """A curve of one operation on groups of one shape."""

    op: str
    shape: Shape
    crossings: int
    at_once: int
    basis: str
    curve: Curve
    row: dict = field(default_factory=dict)


_SLOPE_LEAST, _SLOPE_MOST, _SLOPE_OCTAVES = 0.25, 4, 4
_SMALL_SIZE, _FORGOTTEN, _HALF_GAIN, _LARGE_SIZE = 8192, 6, 0.9, 2.0 ** 32


def _shape_equal(a: Shape, b: Shape) -> bool:
    if a[:3] != b[:3]:
        return False
    return a.domains == 1 or (a.nics == b.nics and (not a.racks or not b.racks or a.racks == b.racks))


def _pattern_equal(a: Shape, b: Shape) -> bool:
    if (a.domains == 1) != (b.domains == 1):
        return False
    if a.domains == 1:
        return True
    return (a.per_domain == b.per_domain and a.nics == b.nics
            and (not a.racks or not b.racks or (a.racks == 1) == (b.racks == 1)))


class _Reading:
    """One healthy group: the curves that answer for it, and how they go on beyond their ends."""

    def __init__(self, m: Matrix, name: str, ways: Ways):
        self.m, self.name, self.op, self.ways = m, name, OPS[name], ways.healthy()
        self.same: Collective | None = None
        self.below: Collective | None = None
        self.above: Collective | None = None
        self._find(name, ways)
        self.first = self.last = 0.0  # bytes; beyond them no curve answers
        self.answers = self.same or self.below or self.above
        self.model, self.join = Model(m, self.ways, name), None
        small = self.answers and self.answers.curve.bytes[0] <= _SMALL_SIZE
        if _nccl(m) and ways.shape.domains > 1 and not small:
            self.join = Join(m, name, self.ways, self.model)
        if self.answers:
            self._find_ends()
            self._anchor()

    def _better(self, c: Collective, kept: Collective | None, w: Ways) -> bool:
        def strange(c: Collective) -> float:
            far = 0.0
            if c.crossings and w.crossings:
                far += abs(math.log(c.crossings / w.crossings))
            if c.at_once and c.shape.domains > 1:
                far += abs(math.log(c.at_once / w.at_once))
            return far

        return not kept or c.shape.ranks != kept.shape.ranks or strange(c) < strange(kept)

    def _find(self, name: str, w: Ways) -> None:
        for c in self.m.collective_curves:
            if c.op != name or not c.curve:
                continue
            if _shape_equal(c.shape, w.shape) and self._better(c, self.same, w):
                self.same = c
            if not _pattern_equal(c.shape, w.shape) or (_nccl(self.m) and w.shape.domains > 1):
                continue
            r, n = c.shape.ranks, w.shape.ranks
            if r <= n and (not self.below or r >= self.below.shape.ranks) and self._better(c, self.below, w):
                self.below = c
            if r > n and (not self.above or r <= self.above.shape.ranks) and self._better(c, self.above, w):
                self.above = c

    def _find_ends(self) -> None:
        assert self.answers
        a = self.answers.curve
        self.first, self.last = a.bytes[0], a.bytes[-1]
        if self.same or not self.below or not self.above:
            return
        b = self.above.curve
        if b.bytes[0] > self.last or b.bytes[-1] < self.first:
            self.above = None
            return
        self.first, self.last = max(self.first, b.bytes[0]), min(self.last, b.bytes[-1])

    def _model(self, bytes: float) -> float:
        return self.model.time(bytes)

    def _anchor(self) -> None:
        self.slopes, self.first_moving, self.last_moving = 1.0, 0.0, 0.0
        at = max(self.first, self.last / _SLOPE_OCTAVES)
        point = not at < self.last
        self.first_sec, self.last_sec = self.inside(self.first), self.inside(self.last)
        self.first_model, self.last_model = self._model(self.first), self._model(self.last)
        own = self.last_sec if point else self.last_sec - self.inside(at)
        said = self.last_model if point else self.last_model - self._model(at)
        if not said > 0:
            own /= self.last if point else self.last - at
            self.slope = max(own, _SLOPE_LEAST * self.last_sec / self.last)
            self.first_model = self.last_model = nan
            return
        ratio = least(most(own / said, _SLOPE_LEAST), _SLOPE_MOST)
        moving = least(1, div(self._model(2 * self.last) - self.last_model, self.last_model))
        self.slope, self.slopes, self.last_moving = ratio ** (moving * moving), ratio, moving
        self.first_moving = 1 - least(1, div(self._model(2 * self.first) - self.first_model, self.first_model))

    def _grown(self, c: Collective, n: int, base: float, busy: float, full: float) -> float:
        first, turns = c.shape.ranks, self.op.turns
        tree = base * math.log2(n) / math.log2(first)
        if not self.m.of_gpus:
            return tree + busy
        if self.op.links == "next":
            return base + busy
        if self.op.links == "exchange":
            return base + (n - first) * _PEER + busy
        if c.shape.domains == 1:
            return base + algorithm.further(turns * (n - first), full, busy)
        return tree + busy

    def _rescaled(self, c: Collective, sec: float, bytes: float) -> float:
        n, gpu = self.ways.shape.ranks, self.m.of_gpus
        more = self.op.bus_factor(n) / self.op.bus_factor(c.shape.ranks)
        base = least(c.curve.floor(), sec)
        busy = (sec - base) * more
        if n >= c.shape.ranks:
            return self._grown(c, n, base, busy, bytes * c.curve.beta * more)
        fewer = base * math.log2(n) / math.log2(c.shape.ranks)
        hops = self.op.turns * (c.shape.ranks - n)
        return max(fewer, base - hops * algorithm.HOP_LL if gpu else fewer) + busy

    def inside(self, bytes: float) -> float:
        """Seconds by the curves at a size that they hold."""
        assert self.answers
        sec, n = self.answers.curve.time(bytes), self.ways.shape.ranks
        if self.same:
            return sec
        if self.below and self.above:
            first, last = self.below.shape.ranks, self.above.shape.ranks
            weight = math.log(n / first) / math.log(last / first)
            return math.exp((1 - weight) * math.log(sec) + weight * math.log(self.above.curve.time(bytes)))
        return self._rescaled(self.answers, sec, bytes)

    def _published(self) -> bool:
        """By another site's curve of this very shape, between domains."""
        return self.same is not None and self.same.basis == "preset" and _nccl(self.m) and self.ways.shape.domains > 1

    def interval(self, bytes: float) -> tuple[float, float, str]:
        """Its ends, of the price, and the basis."""
        model = self._model(bytes)
        if not self.answers:
            wide = 1 + ((self.join or Join(self.m, self.name, self.ways, self.model)).error(model) if _nccl(self.m) else 0.25)
            return 1 / wide, wide, "modelled"
        a = self.answers
        end = self.last if bytes > self.last else self.first if bytes < self.first else 0.0
        wide = 1 if self.same else 1.15 if self.below and self.above else 1.25
        far = 1.0
        if end and end == self.first and bytes < self.first and self.join and self.join.curves:
            far = 1 + self.join.error(model)
        elif self._published():
            at = end or bytes
            error = _error(self.name, _log2(self._model(at)) - _log2(self._model(0)), _SAME, 0)
            wide *= 1 + (error if math.isfinite(error) else 0)
        if end and not (end == self.first and bytes < self.first and self.join and self.join.curves):
            far = 1 + unsure(end, bytes, self.last_moving if bytes > self.last else self.first_moving,
                             self.slopes if bytes > self.last else 1)
        low, high = a.curve.interval(end or bytes)
        basis = "fitted" if end and a.basis == "measured" else a.basis
        return low / wide / far, high * wide * far, basis

    def time(self, bytes: float) -> float:
        """Seconds of the healthy group."""
        if not self.answers:
            return self.join.time(self._model(bytes)) if self.join else self._model(bytes)
        if self.first <= bytes <= self.last:
            return self.inside(bytes)
        model, above = self._model(bytes), bytes > self.last
        end, at = (self.last_sec, self.last_model) if above else (self.first_sec, self.first_model)
        if math.isnan(model) or math.isnan(at):
            return end + self.slope * (bytes - self.last) if above else end
        if above:
            return end + self.slope * (model - at)
        if not self.join or not self.join.curves:
            return div(end * model, at)
        alone = at
        if self.ways.at_once > 1:
            assert self.answers
            alone = Model(self.m, replace(self.ways, at_once=max(1, self.answers.at_once)), self.name).time(self.first)
        off = end / self.join.time(alone)
        left = 2.0 ** (-math.log2(self.first / bytes) / _FORGOTTEN) if off > 1 else 1
        return self.join.time(model) * off ** left


_PLUGINS = (("efa", "EFA's tuner"), ("aws", "EFA's tuner"), ("libfabric", "EFA's tuner"), ("ofi", "EFA's tuner"),
            ("gib", "gIB's tuner"), ("tcpx", "TCPX's tuner"), ("fastrak", "TCPX's tuner"), ("ucx", "UCX's plugin"), ("ucc", "UCC"))


def _foreign(m: Matrix, op: Op, w: Ways) -> str:
    """Software that runs the collective and is not modelled (src/matrix/collective_cost.c); "": none."""
    if not _nccl(m):
        return "MPI's choice" if op.links == "ring" and m.transport == "mpi" else ""
    if any(name in (m.places.model[0] or "") for name in ("Instinct", "MI300")):
        return "RCCL"
    if w.outer < 0:
        return ""
    told = m.provenance or {}
    set = told.get("environment") or {}
    for text in (told.get("network"), *(set.get(f"NCCL_{v}") for v in ("NET", "NET_PLUGIN", "TUNER_PLUGIN"))):
        for part, name in _PLUGINS:
            if isinstance(text, str) and part in text.lower():
                return name
    ping = m.tier[w.outer].curve("oneway")
    return "the network plugin's tuner" if ping and ping.alpha > 10e-6 else ""


class Price(NamedTuple):
    """A price, its interval and how it came about."""

    seconds: float
    low: float
    high: float
    basis: str
    not_modelled: str = ""  #: software that runs it and that no curve shows: the price is NCCL's, or a ring's


class Quote:
    """A collective on one group, resolved once for any size."""

    def __init__(self, m: Matrix, name: str, ids: Sequence[int]):
        self.m, self.op = m, OPS[name]
        self.ways = ways_of(m, ids, self.op)
        self.own = _Reading(m, name, self.ways)
        self.slow = Model(m, self.ways, name) if self.ways.slowed else self.own.model
        near = _ways_near(m, self.ways)
        joined = self.own.join and self.own.join.curves
        few = _ways_few(m, self.ways) if joined and not near else None
        near = near or few
        self.near = _Reading(m, name, near) if near else None
        if self.near and not self.own.answers and not joined and not self.near.answers:
            self.near = None  # both by the model, which says itself which is slower
        self.keep = self._kept_share() if self.near else 0.0

    def _kept_share(self) -> float:
        assert self.near
        domains = self.near.ways.shape.domains
        if domains > 1:
            return _HALF_GAIN ** math.log2(self.ways.shape.domains / domains)
        wide, narrow = (r.model.time(_LARGE_SIZE) for r in (self.own, self.near))
        return 1 if math.isnan(wide) or math.isnan(narrow) else least(1, div(wide, narrow))

    def _floor(self, bytes: float) -> float:
        own, near = self.own, self.near
        if not near:
            return 0
        measured = own.same is not None and bytes <= own.last
        if measured and bytes >= own.first:
            return 0
        sec = self.keep * near.time(bytes)
        return least(sec, own.first_sec) if measured else sec

    def healthy(self, bytes: float) -> float:
        """Seconds where no part is slow."""
        own, bound = self.own.time(bytes), self._floor(bytes)
        return bound if bound > own else own

    def time(self, bytes: float) -> float:
        """Seconds as it is."""
        sec = self.healthy(bytes)
        if not self.ways.slowed:
            return sec
        factor, add = self.slow.slower(self.own.model, bytes)
        if math.isnan(factor) and math.isfinite(sec):
            factor = div(1, min(self.ways.inner_factor, self.ways.outer_factor[0]))
        return sec * factor + add

    def price(self, bytes: float) -> Price:
        """time() with its interval and basis."""
        sec, own = self.time(bytes), self.own.time(bytes)
        bound = self._floor(bytes)
        below = self.own.same is not None and bytes < self.own.first
        by = self.near if self.near and bound > own and not below else self.own
        low, high, basis = by.interval(bytes)
        known = by.answers and by.first <= bytes <= by.last
        return Price(sec, sec * low, sec * high, basis, "" if known else _foreign(self.m, self.op, self.ways))
