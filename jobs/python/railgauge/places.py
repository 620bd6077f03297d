# SPDX-License-Identifier: BSD-3-Clause
"""Who was measured and where it stands: endpoints, their hosts, racks, leaves and NICs; topology.json."""

from __future__ import annotations

from typing import Any, NamedTuple, Optional

from .files import Error, Path, Table, expand_hosts, read_json

LEVELS = ("host", "domain", "leaf", "rack", "rail", "spine")
PLACES_MAX = 1 << 20


class Endpoint(NamedTuple):
    """One rank's device."""

    id: int
    host: str
    gpu: int  #: index on its host, of a GPU or a socket
    kind: str  #: "gpu" or "cpu"
    model: Optional[str]
    nic: Optional[str]  #: the nearest one
    busid: Optional[str]  #: PCI address; None in a cost matrix, which does not have it
    uuid: Optional[str]
    domain: Optional[str]  #: NVLink domain; None: not visible, as below
    leaf: Optional[str]
    rack: Optional[str]
    rail: Optional[str]
    spine: Optional[str]


class Nic(NamedTuple):
    host: int
    name: str
    rate_Bps: Optional[float]


class Places:
    """Endpoints and their groups.  ``at[level][id]`` is an index into ``names[level]``, -1: not visible."""

    def __init__(self, count: int):
        self.count = count
        self.names: dict[str, list[str]] = {level: [] for level in LEVELS}
        self.at: dict[str, list[int]] = {level: [-1] * count for level in LEVELS}
        self.kind = ["cpu"] * count
        self.model: list[str | None] = [None] * count
        self.busid: list[str | None] = [None] * count
        self.uuid: list[str | None] = [None] * count
        self.nics: list[Nic] = []
        self.nearest = [-1] * count
        self.local: list[int] = []
        self.tiers: list[tuple[str, tuple[str, ...]]] = []  #: name and the levels that a pair of it shares

    def finish(self) -> None:
        """What follows from the rest; called when all is read."""
        hosts: list[list[int]] = [[] for _ in self.names["host"]]
        self.local = []
        for endpoint, host in enumerate(self.at["host"]):
            self.local.append(len(hosts[host]))
            hosts[host].append(endpoint)
        self._of_host = dict(zip(self.names["host"], hosts))
        self._rules = [[self.at[level] for level in same] for _, same in self.tiers]
        self._nic_rules = [None if {"host", "domain"} & set(same) else rule
                           for (_, same), rule in zip(self.tiers, self._rules)]

    def tier(self, a: int, b: int) -> int:
        """The tier of two different endpoints: the first whose levels both know and share, else the last."""
        for i, levels in enumerate(self._rules):
            if all(at[a] == at[b] >= 0 for at in levels):
                return i
        return len(self._rules) - 1

    def nic_tier(self, a: int, b: int) -> int:
        """The same where the pair takes its NICs though NVLink joins it."""
        for i, levels in enumerate(self._nic_rules):
            if levels is not None and all(at[a] == at[b] >= 0 for at in levels):
                return i
        return len(self._rules) - 1

    def find(self, host: str, gpu: int) -> int | None:
        """The id of GPU (or socket) number ``gpu`` of a host; None: there is none."""
        here = self._of_host.get(host, ())
        return here[gpu] if 0 <= gpu < len(here) else None

    def name(self, level: str, endpoint: int) -> str | None:
        at = self.at[level][endpoint] if level in self.at and 0 <= endpoint < self.count else -1
        return self.names[level][at] if at >= 0 else None

    def endpoint(self, id: int) -> Endpoint:
        nic = self.nearest[id]
        levels = {level: self.name(level, id) for level in LEVELS[1:]}
        return Endpoint(id, self.names["host"][self.at["host"][id]], self.local[id], self.kind[id], self.model[id],
                        self.nics[nic].name if nic >= 0 else None, self.busid[id], self.uuid[id], **levels)

    def endpoints(self) -> Table:
        """Every endpoint as a row; the keys are those of Endpoint."""
        return Table(self.endpoint(id)._asdict() for id in range(self.count))


# --- "places" of matrix.json: rows of equal length, runs of rows that grow by a step ---

def _between(value: Any, least: int, most: int, what: str) -> int:
    if type(value) is not int:
        raise Error(f"{what} is not an integer")
    if not least <= value <= most:
        raise Error(f"{what} {value} is outside {least}..{most}")
    return value


def _rows(count: int, row: int, runs: Any, where: str, least: int, most: int) -> list[int]:
    out: list[int] = []
    if not isinstance(runs, list):
        raise Error(f"{where} is not a list of runs")
    for i, run in enumerate(runs):
        at = f"{where}[{i}]: the"
        times = _between(run[0], 1, (count - len(out)) // row, f"{at} number of rows")
        step = _between(run[2], -PLACES_MAX, PLACES_MAX, f"{at} step") if len(run) == 3 else 0
        first = run[1] if isinstance(run[1], list) else [run[1]] * row
        if len(first) != row:
            raise Error(f"{where}[{i}]: {len(first)} values where a row has {row}")
        for value in first:
            _between(value, least, most, f"{at} value")
            _between(value + (times - 1) * step, 0 if step else least, most, f"{at} last value")
        for k in range(times):
            out += [value + k * step for value in first] if step else first
    if len(out) < count:
        raise Error(f"{where}: {(count - len(out)) // row} rows are missing")
    return out


def _names(given: Any, where: str) -> list[str]:
    try:
        names = expand_hosts(given) if isinstance(given, str) else given
    except ValueError as why:
        raise Error(f"{where}: host list: {why}") from None
    if len(set(names)) < len(names):
        twice = next(name for i, name in enumerate(names) if name in names[:i])
        raise Error(f'{where}: the name "{twice}" appears twice')
    return names


def _read_nics(p: Places, nics: dict, row: int, where: str) -> None:
    count, length, hosts = nics["count"], nics["row"], len(p.names["host"])
    if not 0 <= count <= PLACES_MAX or length < 1 or count % length:
        raise Error(f"{where}: {count} NICs in rows of {length}")
    kinds = _rows(count, length, nics["at"], f"{where}.at", 0, len(nics["kinds"]) - 1)
    host = _rows(count, length, nics["host"], f"{where}.host", 0, hosts - 1)
    for kind, at in zip(kinds, host):
        p.nics.append(Nic(at, nics["kinds"][kind]["name"], nics["kinds"][kind]["rate_Bps"] or None))
    p.nearest = _rows(p.count, row, nics["nearest"], f"{where}.nearest", -1, count - 1)


def of_matrix(given: dict, where: str) -> Places:
    """The places of a cost matrix; its tiers are not in them."""
    count, row = given["endpoints"], given["row"]
    if not 1 <= count <= PLACES_MAX or row < 1 or count % row:
        raise Error(f"{where}: {count} endpoints in rows of {row} (1..{PLACES_MAX}, rows of equal length)")
    p = Places(count)
    for level, what in given["levels"].items():
        at = f"{where}.levels.{level}"
        p.names[level] = _names(what["names"], f"{at}.names")
        least = 0 if level == "host" else -1
        p.at[level] = _rows(count, row, what["at"], f"{at}.at", least, len(p.names[level]) - 1)
    kinds = given["devices"]["kinds"]
    for id, kind in enumerate(_rows(count, row, given["devices"]["at"], f"{where}.devices.at", 0, len(kinds) - 1)):
        p.kind[id], p.model[id] = kinds[kind]["kind"], kinds[kind]["model"] or None
    if "nics" in given:
        _read_nics(p, given["nics"], row, f"{where}.nics")
    return p


# --- topology.json ---

class Topology(Places):
    """topology.json: the endpoints, and every table of the file as it stands there."""

    def __init__(self, path: Path):
        root = read_json(path, "topology")
        self.path, self._root = path, root
        for key, given in root.items():
            if isinstance(given, dict) and "columns" in given:
                self._table(key)
        rows = self._table("endpoints")
        super().__init__(len(rows))
        self.fabric: str | None = root["fabric"]
        self.provenance: dict = root["provenance"]
        self.unseen: list[dict] = root["unseen"]  #: what could not be seen, and why
        self._read_tiers(root["tiers"])
        for level, names in root["levels"].items():
            self.names[level] = _names(names, f"{path}: levels.{level}")
        self.names["host"] = _names(self._table("hosts").column("name"), f"{path}: hosts")
        for name in self.names["host"]:
            if not 1 <= len(name.encode()) <= 255 or set(name) & set("[],") or name.startswith("-"):
                raise Error(f'{path}: hosts: name is "{name:.60}": empty, long, with bracket or comma, or a dash in front')
        for i, nic in enumerate(self._table("nics")):
            self._index(nic["host"], len(self.names["host"]), f"nics.rows[{i}]: host")
            if nic["rate_Bps"] is not None and not 0 < nic["rate_Bps"] <= 1e15:
                raise Error(f"{path}: nics.rows[{i}]: rate_Bps is {nic['rate_Bps']}, not a positive number in range or null")
            self.nics.append(Nic(nic["host"], nic["name"], nic["rate_Bps"]))
        for id, row in enumerate(rows):
            self._read_endpoint(id, row)
        self.finish()
        self._read_uuids()

    def _read_tiers(self, tiers: list[dict]) -> None:
        for i, tier in enumerate(tiers):
            if (not tier["same"]) != (i == len(tiers) - 1):
                raise Error(f'{self.path}: tiers[{i}]: "same" must be empty in the last tier and only there')
            self.tiers.append((tier["name"], tuple(tier["same"])))

    def _index(self, value: int | None, count: int, where: str) -> int:
        if value is not None and not 0 <= value < count:
            raise Error(f"{self.path}: {where} is {value}, not a whole number of 0..{count - 1}")
        return -1 if value is None else value

    def _read_endpoint(self, id: int, row: dict) -> None:
        where = f"endpoints.rows[{id}]:"
        models, sources = self._root["models"], self._root["sources"]
        self._index(row["source"], len(sources), f"{where} source")
        self._index(row["local"], 65535, f"{where} local")
        self._index(row["model"], len(models), f"{where} model")
        for level in LEVELS[:5]:
            self.at[level][id] = self._index(row[level], len(self.names[level]), f"{where} {level}")
        for level, source in zip(LEVELS, sources[row["source"]]):
            if (source == "none") != (row[level] is None):
                raise Error(f'{self.path}: {where} {level} is {row[level]}, which does not fit its source "{source}"')
        self.kind[id], self.busid[id] = row["kind"], row["busid"]
        self.model[id] = models[row["model"]] if row["model"] is not None else None
        nic = self.nearest[id] = self._index(row["nic"], len(self.nics), f"{where} nic")
        if nic >= 0 and self.nics[nic].host != row["host"]:
            raise Error(f"{self.path}: {where} nic is {nic}, a NIC of another host")

    def _read_uuids(self) -> None:
        uuid = {(gpu["host"], gpu["busid"]): gpu["uuid"] for gpu in self.table("gpus") if gpu["busid"]}
        for id in range(self.count):
            self.uuid[id] = uuid.get((self.at["host"][id], self.busid[id]))

    def _table(self, key: str) -> Table:
        given = self._root[key]
        columns = given["columns"]
        for i, row in enumerate(given["rows"]):
            if not isinstance(row, list) or len(row) != len(columns):
                raise Error(f"{self.path}: {key}.rows[{i}] has not {len(columns)} cells")
        return Table(dict(zip(columns, row)) for row in given["rows"])

    def table(self, key: str) -> Table:
        """A table of the file: hosts, nics, gpus (UUID, serials, slots), ports, cables ...; empty where it has none."""
        if not isinstance(self._root.get(key, {"columns": []}), dict):
            raise Error(f'{self.path}: "{key}" is no table')
        return self._table(key) if "columns" in self._root.get(key, ()) else Table()
