# SPDX-License-Identifier: BSD-3-Clause
"""A campaign's directory: what `railgauge run` wrote, as tables."""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
import warnings
from typing import Any, Optional

from .files import Error, Path, Table, check_json, crc32c, parse_json, read_json
from .library import NoLibrary
from .matrix import Matrix
from .places import Endpoint, Topology
from .points import NIC_STAGES, Head, Round, plan_crc, read_plan, read_points
from .price import PAIR_OPS, bus_factor, nan


class Verdict:
    """accept.json: the verdict of a campaign, each figure beside its limit."""

    def __init__(self, root: dict):
        self.root = root
        self.verdict: str = root["verdict"]  #: PASS, WARN, FAIL or UNKNOWN
        self.line: str = root["line"]  #: the same in one sentence
        self.checks = Table(root["checks"])  #: value, low, high, limit in the unit that each names
        self.parts = Table(root["parts"])


def read_accept(path: Path) -> Verdict:
    """The verdict that `railgauge accept DIR -o FILE` wrote."""
    return Verdict(read_json(path, "accept"))


class Prediction:
    """One item of prediction.json: the time of a training step; ``terms`` say what it is made of, in seconds."""

    def __init__(self, root: dict):
        self.root = root
        self.terms = Table({key: value for key, value in term.items() if key != "message"} for term in root["terms"])


def read_predictions(path: Path) -> list[Prediction]:
    """prediction.json of `railgauge run`; of `railgauge predict --json` the one that it is."""
    try:
        items = read_json(path, "predictions")["predictions"]
    except Error as why:
        if '"railgauge-prediction"' not in str(why):
            raise
        items = [read_json(path, "prediction")]
    return [Prediction(item) for item in items]


def _command(*words: str) -> Any:
    """What railgauge answers to these words, as JSON."""
    program = os.environ.get("RAILGAUGE") or shutil.which("railgauge")
    if not program:
        raise Error("railgauge is not in the path, nor named by $RAILGAUGE")
    try:
        done = subprocess.run([program, *words], stdin=subprocess.DEVNULL, capture_output=True, check=False)
    except OSError as why:
        raise Error(f"{program}: {why.strerror}") from None
    if done.returncode not in (0, 1, 2):  # good, below a limit, could not judge
        raise Error(done.stderr.decode("utf-8", "replace").strip() or f"{program} ended with {done.returncode}")
    return parse_json(done.stdout, f"railgauge {words[0]}")


class Campaign:
    """A campaign's directory.  Files are read when they are first asked for, and checked against each other."""

    def __init__(self, path: Path = "last"):
        self.path = os.fspath(path)
        if not os.path.isdir(self.path):
            raise Error(f"{self.path}: no directory of a campaign")

    def _file(self, name: str) -> str:
        return os.path.join(self.path, name)

    @functools.cached_property
    def topology(self) -> Topology:
        return Topology(self._file("topology.json"))

    @functools.cached_property
    def matrix(self) -> Matrix:
        matrix = Matrix(self._file("matrix.json"))
        if len(matrix) != self.topology.count:
            raise Error(f"{matrix.path} has {len(matrix)} endpoints, {self.topology.path} {self.topology.count}")
        return matrix

    @functools.cached_property
    def plan(self) -> list[Round]:
        return read_plan(self._file("plan.tsv"), self.topology.count)

    @functools.cached_property
    def _measured(self) -> tuple[Head, Table]:
        path, t = self._file("points.tsv"), self.topology
        head, points = read_points(path)
        if head.endpoints != t.count:
            raise Error(f"{path} is of {head.endpoints} endpoints, {t.path} has {t.count}")
        if head.topology_crc not in (None, _topology_crc(t, head.transport)):
            raise Error(f"{path} was measured on other endpoints or transport than those of {t.path}")
        if head.plan_crc != plan_crc(self.plan):
            raise Error(f"{path} was measured by another plan than {self._file('plan.tsv')}")
        return head, points

    @functools.cached_property
    def endpoints(self) -> list[Endpoint]:
        """Every endpoint; where its racks and leaves were measured, and not declared, they are the measured ones."""
        found = [self.topology.endpoint(id) for id in range(self.topology.count)]
        if not os.path.exists(self._file("matrix.json")):
            return found
        levels = {id: self.matrix.places.endpoint(id) for id in range(len(found))}
        keys = ("domain", "leaf", "rack", "rail", "spine")
        return [e._replace(**{key: getattr(levels[e.id], key) or getattr(e, key) for key in keys}) for e in found]

    def points(self) -> Table:
        """A row a point (points.tsv) with the names of its ends.

        Of a pair src sends to dst; of a collective they are the first and the last member.  ``GBps`` is bus bandwidth
        as nccl-tests defines it, 1e9 bytes a second; ``share`` that of a healthy pair of the tier (``tier``), of a
        collective that of the matrix's healthy group of this shape, nan: not known, or a collective without the C library.
        The other columns are those of points.tsv: bytes, and seconds over the samples.
        """
        healthy, ends = self._healthy(), self.endpoints
        rows = Table()
        for point in self._measured[1]:
            good, sec = point["stop"] != "failed" and point["check"] != "wrong", point["sec"]
            row = dict(point)
            for side in ("src", "dst"):
                end = ends[point[side]]
                row.update({f"{side}_host": end.host, f"{side}_gpu": end.gpu, f"{side}_nic": end.nic,
                            f"{side}_leaf": end.leaf, f"{side}_rack": end.rack})
            row["tier"], expected = healthy(point)
            row["GBps"] = point["bytes"] / sec * bus_factor(point["op"], point["ranks"]) / 1e9 if good else nan
            row["share"] = expected / sec if good else nan
            rows.append(row)
        return rows

    def _healthy(self) -> Any:
        """point -> name of its tier, seconds that it would take where nothing is slow."""
        if not os.path.exists(self._file("matrix.json")):
            return lambda point: (None, nan)
        m, plan = self.matrix, self.plan

        def healthy(point: dict) -> tuple[Optional[str], float]:
            if point["op"] in PAIR_OPS:
                src, dst, nic = point["src"], point["dst"], point["stage"] in NIC_STAGES
                return m.tier_of(src, dst, nic), m.healthy_pair(point["op"], src, dst, point["bytes"], nic)
            if point["round"] >= len(plan) or point["group"] >= len(plan[point["round"]].groups):
                return None, nan
            try:
                return None, m.quote(point["op"], plan[point["round"]].groups[point["group"]]).healthy(point["bytes"])
            except NoLibrary as why:
                warnings.warn(f"no share of collectives: {why}", stacklevel=4)
                return None, nan

        return healthy

    def predictions(self) -> Table:
        """A row a predicted layout: seconds of a step with their interval, tokens/s, memory."""
        keys = ("model", "layout", "strategy", "ranks", "step_s", "lo_s", "hi_s", "compute_s", "exposed_s", "hidden_s",
                "bubble_share", "tokens_per_s_per_gpu", "mfu", "anchored")
        return Table({**{key: p.root.get(key) for key in keys}, "memory_bytes": p.root.get("memory", {}).get("total_bytes"),
                      "fits": p.root.get("memory", {}).get("fits")} for p in self.prediction_items)

    @functools.cached_property
    def prediction_items(self) -> list[Prediction]:
        """The same with all terms."""
        return read_predictions(self._file("prediction.json"))

    def accept(self, *words: str) -> Verdict:
        """accept.json of the directory; where there is none, or with further options, what `railgauge accept` says now."""
        if not words and os.path.exists(self._file("accept.json")):
            return read_accept(self._file("accept.json"))
        return Verdict(check_json(_command("accept", self.path, "--json", *words), "railgauge accept", "accept"))

    def parts(self) -> Table:
        """What to act on, what needs it most first, as `railgauge show DIR parts` says; without the program as
        accept.json has it."""
        if os.path.exists(self._file("accept.json")) and not (os.environ.get("RAILGAUGE") or shutil.which("railgauge")):
            return self.accept().parts
        answer = _command("show", self.path, "parts", "--json")
        if not isinstance(answer, dict) or not isinstance(answer.get("parts"), list):
            raise Error("railgauge show: its answer has no parts: is it an older version?")
        return Table(answer["parts"])


def _topology_crc(t: Topology, transport: str) -> int:
    lines = "".join(f"\n{t.names['host'][t.at['host'][id]]} {t.kind[id]} {t.local[id]}" for id in range(t.count))
    return crc32c((transport + lines).encode())
