# SPDX-License-Identifier: BSD-3-Clause
"""The cost matrix: what it costs to move bytes between any two endpoints, and to run a collective on any group."""

from __future__ import annotations

import json
import os
import tempfile
from typing import Any, Iterable, Optional, Sequence

from . import places, price
from .files import Error, Path, Table, read_json
from .library import Handle, Job, Quote
from .price import Collective, Curve, Part, Shape, Tier, nan

_EXTENT = 1 << 20  # of lists
_BYTES_MAX, _SEC_MAX = 1e18, 1e9


def _number(value: float, most: float, where: str, least: float = 0) -> float:
    if not least <= value <= most:
        raise Error(f"{where} is {value:g}, outside {least:g}..{most:g}")
    return value


def _curve(given: dict, where: str) -> Curve:
    before = 0.0
    for i, point in enumerate(given["points"]):
        at = f"{where}.points[{i}]"
        for k, value in enumerate(point[:4]):
            _number(value, _SEC_MAX if k else _BYTES_MAX, f"{at}[{k}]")
        if type(point[4]) is not int:
            raise Error(f"{at} is not [bytes, seconds, low, high, samples]")
        _number(point[4], _EXTENT * 1024, f"{at}[4]")
        if not point[0] > 0 or not point[1] > 0:
            raise Error(f"{at}: {point[0]:g} bytes in {point[1]:g} s: both must be positive")
        if not point[0] > before:
            raise Error(f"{at}: size {point[0]:.9g} does not come after {before:.9g}")
        before = point[0]
    bytes, sec, low, high, n = zip(*given["points"])
    return Curve(tuple(map(float, bytes)), sec, low, high, n, _number(given["alpha_s"], _SEC_MAX, f"{where}.alpha_s"),
                 _number(given["beta_s_per_B"], _SEC_MAX, f"{where}.beta_s_per_B"))


def _tier(given: dict, where: str) -> Tier:
    curves = {direction: _curve(curve, f"{where}.curves.{direction}") for direction, curve in given["curves"].items()}
    seen = given.get("coverage", {"measured_pairs": 0, "possible_pairs": 0})
    if not 0 <= seen["measured_pairs"] <= seen["possible_pairs"]:
        raise Error(f"{where}: {seen['measured_pairs']} of {seen['possible_pairs']} pairs")
    loaded = _number(given["loaded"], 1e3, f"{where}.loaded") if "loaded" in given else nan
    return Tier(given["name"], tuple(given["same"]), given["basis"], given["nic"], loaded, curves, given)


def _collective(given: dict, where: str) -> Collective:
    s = Shape(*(given[key] for key in Shape._fields))
    if (not 2 <= s.ranks <= _EXTENT or not 1 <= s.domains <= s.ranks or not 1 <= s.per_domain <= s.ranks
            or not 1 <= s.nodes <= s.ranks or s.nics < 1 or s.racks < 0):
        raise Error(f"{where}: no group has {s.ranks} ranks, {s.domains} domains, {s.per_domain} a domain, {s.nodes} "
                    f"nodes, {s.nics} NICs and {s.racks} racks")
    crossings, at_once = given.get("crossings", 0), given.get("at_once", 0)
    if not 0 <= crossings <= s.ranks or not 0 <= at_once <= _EXTENT:
        raise Error(f"{where}: no ring of {s.ranks} ranks has {crossings} crossings, no {at_once} groups run at once")
    return Collective(given["op"], s, given["basis"], _curve(given["curve"], f"{where}.curve"))


class Matrix:
    """A matrix.json, or the one in a campaign's directory.  Sizes are bytes, times seconds; ids are 0 .. len - 1."""

    def __init__(self, path: Path):
        if os.path.isdir(path):
            path = os.path.join(path, "matrix.json")
        root = read_json(path, "matrix")
        self.path = path
        self.transport: str = root["transport"]
        self.fabric: Optional[str] = root.get("fabric")
        self.provenance: Optional[dict] = root["provenance"]
        self.places = places.of_matrix(root["places"], f"{path}: places")
        self.tier = [_tier(tier, f"{path}: tiers[{i}]") for i, tier in enumerate(root["tiers"])]
        self.places.tiers = [(tier.name, tier.same) for tier in self.tier]
        self.places.finish()
        self.collective_curves = [_collective(c, f"{path}: collectives[{i}]") for i, c in enumerate(root["collectives"])]
        self.exception = [self._exception(e, f"{path}: exceptions[{i}]") for i, e in enumerate(root["exceptions"])]
        for i, kernel in enumerate(root.get("ep_kernels", ())):
            if not kernel["domains"] <= kernel["ranks"] <= _EXTENT:
                raise Error(f"{path}: ep_kernels[{i}]: no group has {kernel['ranks']} ranks in {kernel['domains']} domains")
        self._root: dict = root
        self._quotes: dict[tuple, Quote] = {}
        self._library: Optional[Handle] = None
        self._healthy: Optional[Handle] = None
        self._concerned = self._by_part()

    def _exception(self, given: dict, where: str) -> Part:
        names = [tier.name for tier in self.tier]
        if given.get("tier", names[0]) not in names:
            raise Error(f'{where}: no tier "{given["tier"]}"')
        e = Part(given["part"], given["side"], given["a"], given.get("b", -1),
                       names.index(given["tier"]) if "tier" in given else -1,
                       _number(given["factor"], 1, f"{where}.factor"),
                       _number(given["alpha_add_s"], _SEC_MAX, f"{where}.alpha_add_s"), given)
        level = price.PART_LEVEL[e.part]
        limit = len(self.places.names[level]) if level else self.places.count
        if not 0 <= e.a < limit or (not 0 <= e.b < limit if e.two() else e.b != -1):
            raise Error(f"{where}: {e.part} {e.a}, {e.b} where there are {limit}")
        if given.get("wrong") and e.factor > 0:
            raise Error(f"{where}: wrong data at a factor of {e.factor:g}; it must be 0")
        if given.get("state") in ("wrong", "dead") and e.factor > 0:
            raise Error(f"{where}: state {given['state']} at a factor of {e.factor:g}; it must be 0")
        return e

    def _by_part(self) -> dict[str, dict[int, list[Part]]]:
        """Exceptions by kind of part and by each end of it."""
        found: dict[str, dict[int, list[Part]]] = {}
        for e in self.exception:
            for end in {e.a, e.b} - {-1}:
                found.setdefault(e.part, {}).setdefault(end, []).append(e)
        return found

    # --- who ---

    def __len__(self) -> int:
        """Number of endpoints."""
        return self.places.count

    def __enter__(self) -> Matrix:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the file; questions are refused from here on, also those of its jobs."""
        self._drop_quotes()
        for handle in (self._library, self._healthy):
            if handle:
                handle.close()
        self._root, self._library, self._healthy = {}, None, None

    def __del__(self) -> None:
        if "_concerned" in self.__dict__:  # it was read whole
            self.close()

    def _drop_quotes(self) -> None:
        for quote in self._quotes.values():
            quote.close()
        self._quotes.clear()

    @property
    def root(self) -> dict:
        """matrix.json as it was read."""
        self._check_open()
        return self._root

    def _check_open(self) -> None:
        if not self._root:
            raise Error("closed already")

    def find(self, host: str, gpu: int) -> Optional[int]:
        """The id of GPU (or socket) number ``gpu`` of a host; None: there is none."""
        return self.places.find(host, gpu)

    def hosts(self) -> list[str]:
        return list(self.places.names["host"])

    def level(self, endpoint: int, level: str) -> Optional[str]:
        """The group: ``level(17, "rack")``; None: not known."""
        return self.places.name(level, endpoint)

    # --- what it costs ---

    def _tier_of(self, src: int, dst: int, by_nic: bool = False) -> Optional[int]:
        """None: of one endpoint, or of none."""
        self._check_open()
        if not (0 <= src < len(self) and 0 <= dst < len(self)) or src == dst:
            return None
        return self.places.nic_tier(src, dst) if by_nic else self.places.tier(src, dst)

    def tier_of(self, src: int, dst: int, by_nic: bool = False) -> Optional[str]:
        """Name of the tier of two different endpoints; ``by_nic``: where they take their NICs though NVLink joins them."""
        tier = self._tier_of(src, dst, by_nic)
        return None if tier is None else self.tier[tier].name

    def slowed(self, src: int, dst: int) -> tuple[float, float]:
        """What slow parts make of src -> dst: its share of its tier's bandwidth, and seconds that are added."""
        factor, add, tier = 1.0, 0.0, self._tier_of(src, dst)
        if tier is None:
            return factor, add
        for part, ends in self._concerned.items():
            for at in {price.part_at(self, part, src), price.part_at(self, part, dst)}:
                for e in ends.get(at, ()):
                    if price.crosses(self, e, src, dst, tier):
                        factor, add = min(factor, e.factor), max(add, e.alpha_add)
        return factor, add

    def pair(self, src: int, dst: int, bytes: float) -> float:
        """Seconds to move ``bytes`` one way; nan: not known, inf: a part on the way is dead."""
        tier = self._tier_of(src, dst)
        if tier is None:
            return 0.0 if src == dst and 0 <= src < len(self) else nan
        factor, add = self.slowed(src, dst)
        return price.tier_time(self.tier[tier], float(bytes), factor) + add

    def pair_times(self, src: Sequence[int], dst: Sequence[int], bytes: float) -> list[float]:
        """pair() of each src[i] and dst[i]; what many have in common is priced once."""
        if len(src) != len(dst):
            raise Error(f"{len(src)} sources and {len(dst)} destinations")
        known: dict[tuple[int, float, float], float] = {}
        times = []
        for a, b in zip(src, dst):
            tier = self._tier_of(a, b)
            if tier is None:
                times.append(self.pair(a, b, bytes))
                continue
            factor, add = self.slowed(a, b)
            key = (tier, factor, add)
            if key not in known:
                known[key] = price.tier_time(self.tier[tier], float(bytes), factor) + add
            times.append(known[key])
        return times

    def pair_GBps(self, src: int, dst: int, bytes: float) -> float:
        """GB/s (1e9 bytes a second) of one direction between two endpoints, by pair()."""
        sec = self.pair(src, dst, bytes)
        return bytes / sec / 1e9 if sec > 0 else nan

    def quote(self, op: str, ids: Sequence[int]) -> Quote:
        """A collective on these endpoints in rank order, resolved once for any size: time(), price() and healthy().  Like
        collective() by the C library (railgauge(3))."""
        self._check_open()
        name = price.op_name(op)
        if name is None or len(ids) < 2 or not all(0 <= id < len(self) for id in ids):
            raise Error(f"no {op} of {len(ids)} of the {len(self)} endpoints is known")
        key = (name, tuple(ids))
        if key not in self._quotes:
            if len(self._quotes) > 4096:
                self._drop_quotes()
            self._quotes[key] = Quote(self, name, key[1])
        return self._quotes[key]

    def collective(self, op: str, ids: Sequence[int], bytes: float) -> float:
        """Seconds of a collective; ``bytes`` is S as nccl-tests counts it, the largest buffer of one rank.  nan: not known.
        For this the C library is needed."""
        library = self._by_library()
        known = all(0 <= id < len(self) for id in ids)
        return library.collective(op, ids, bytes) if known else nan

    def collective_GBps(self, op: str, ids: Sequence[int], bytes: float) -> float:
        """GB/s of bus bandwidth as nccl-tests defines it, by collective()."""
        sec = self.collective(op, ids, bytes)
        return bytes / sec * price.bus_factor(price.op_name(op) or op, len(ids)) / 1e9 if sec > 0 else nan

    def job(self, words: str) -> Job:
        """A job in words, ``"model=llama3.1-70b layout=tp=4,dp=auto"``: what it costs on which hosts, the best hosts,
        the best order of ranks.  For this the C library is needed (railgauge(3))."""
        self._by_library()
        return Job(self, words)

    def _by_library(self) -> Handle:
        if self._library is None:
            self._check_open()
            self._library = Handle.of_matrix(self.path, len(self))
        return self._library

    def _without_parts(self) -> Handle:
        """The library's matrix as if no part were slow: a copy, without the words that say it is railgauge's."""
        if self._healthy is None:
            root = {key: value for key, value in self.root.items() if key != "checksum"}
            wrote = {key: value for key, value in (root["provenance"] or {}).items() if key != "tool_version"}
            with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
                json.dump({**root, "exceptions": [], "provenance": root["provenance"] and wrote}, file)
                file.flush()
                self._healthy = Handle.of_matrix(file.name, len(self))
        return self._healthy

    def hosts_range(self, first: int, count: int) -> Optional[range]:
        """The endpoints of ``count`` hosts from ``hosts()[first]`` on; None: there are no such hosts, or their
        endpoints do not follow each other.  By the C library, as collective_ranges()."""
        return self._by_library().hosts_range(first, count)

    def collective_ranges(self, op: str, ranges: Sequence[range], bytes: int) -> float:
        """Seconds of a collective of the members of ranges, ``[range(0, 8192)]``, one after the other: what collective()
        says of their ids, in time that grows with the ranges and not with the members.  For this the C library is needed
        (railgauge(3))."""
        return self._by_library().collective_ranges(op, ranges, bytes)

    # --- tables ---

    def endpoints(self) -> Table:
        """A row an endpoint: id, host, gpu, kind, model, nic, domain, leaf, rack, rail, spine."""
        return self.places.endpoints()

    def tiers(self) -> Table:
        """A row a tier: what is behind it (pairs, coverage), its latency and its rates."""
        def row(tier: Tier) -> dict:
            lat, coverage = tier.curve("oneway"), tier.rest.get("coverage", {})
            return {"tier": tier.name, "same": " ".join(tier.same), "basis": tier.basis, "nic": tier.nic,
                    "pairs": tier.rest["pairs"], "measured_pairs": coverage.get("measured_pairs"),
                    "possible_pairs": coverage.get("possible_pairs"), "latency_s": lat.alpha if lat else nan,
                    "uni_GBps": tier.rate("uni") / 1e9, "bi_GBps": tier.rate("bi") / 1e9,
                    "peak_GBps": tier.rest["peak_Bps"] / 1e9 or nan, "spread": tier.rest["spread"],
                    "loaded": tier.loaded}
        return Table(map(row, self.tier))

    def curves(self) -> Table:
        """A row a point of a curve, of tiers and of collectives: seconds with their 95 % interval, GB/s (collectives:
        of bus bandwidth)."""
        rows = Table()
        for tier in self.tier:
            for direction, curve in tier.curves.items():
                head = {"what": "pair", "name": tier.name, "direction": direction, "ranks": 2, "domains": None,
                        "per_domain": None, "racks": None, "basis": tier.basis}
                rows += _points(head, curve, 1)
        for c in self.collective_curves:
            head = {"what": "collective", "name": c.op, "direction": None, "ranks": c.shape.ranks,
                    "domains": c.shape.domains, "per_domain": c.shape.per_domain, "racks": c.shape.racks, "basis": c.basis}
            rows += _points(head, c.curve, price.bus_factor(c.op, c.shape.ranks))
        return rows

    def exceptions(self) -> Table:
        """A row a part that differs from its tier: factor is its share of the tier's bandwidth in prices, 0: dead; state,
        depth and share say how and when it is slow."""
        keys = ("factor_low", "factor_high", "evidence", "alone", "partners", "wrong", "state", "depth", "share", "bytes", "why")
        return Table({"part": e.part, "side": e.side, "a": self._end(e, e.a), "b": self._end(e, e.b),
                      "tier": self.tier[e.tier].name if e.tier >= 0 else None, "factor": e.factor,
                      "alpha_add_s": e.alpha_add, **{key: e.row.get(key) for key in keys}} for e in self.exception)

    def _end(self, e: Part, at: int) -> Optional[str]:
        level = price.PART_LEVEL[e.part]
        if at < 0:
            return None
        if level:
            return self.places.names[level][at]
        endpoint = self.places.endpoint(at)
        return f"{endpoint.host}:{endpoint.gpu}"

    def findings(self) -> Table:
        """A row a remark: kind and text."""
        return Table(dict(finding) for finding in self.root["findings"])

    def properties(self) -> Table:
        """A row a property of the fabric, which is no fault: kinds of devices, tapers (ratio 2: 2:1), collisions."""
        keys = ("kind", "tier", "level", "ratio", "declared", "devices", "endpoints", "bandwidth_Bps", "seen")
        return Table({key: row.get(key) for key in keys} for row in self.root.get("properties", ()))

    def pairs(self, bytes: float, ids: Optional[Iterable[int]] = None) -> Table:
        """Every pair of these endpoints (all of them: len * (len - 1) rows), in both directions."""
        some = list(range(len(self)) if ids is None else ids)
        rows = Table()
        for src in some:
            for dst in some:
                if src != dst:
                    sec = self.pair(src, dst, bytes)
                    rows.append({"src": src, "dst": dst, "tier": self.tier_of(src, dst), "bytes": bytes, "sec": sec,
                                 "GBps": bytes / sec / 1e9 if sec > 0 else nan, "factor": self.slowed(src, dst)[0]})
        return rows

    def healthy_pair(self, op: str, src: int, dst: int, bytes: float, by_nic: bool = False) -> float:
        """Seconds that healthy pairs of this tier take by the curve of this operation ("pair_bw" ...)."""
        tier = self._tier_of(src, dst, by_nic)
        direction = price.PAIR_OPS.get(op)
        if tier is None or direction is None:
            return nan
        curve = self.tier[tier].curve(direction)
        return curve.time(float(bytes)) if curve and bytes >= curve.bytes[0] else nan


def _points(head: dict, curve: Curve, bus: float) -> list[dict]:
    return [{**head, "bytes": int(size), "sec": sec, "sec_lo": low, "sec_hi": high, "n": n,
             "GBps": size / sec * bus / 1e9}
            for size, sec, low, high, n in zip(curve.bytes, curve.sec, curve.low, curve.high, curve.n)]
