# SPDX-License-Identifier: BSD-3-Clause
"""What was measured: points.tsv, and plan.tsv, by which it was."""

from __future__ import annotations

import re
from typing import Any, Callable, NamedTuple, Union

from .files import TSV_MAX, Error, Path, Table, clean_line, clean_lines, crc32c, decimal, read_bytes, size, whole
from .price import OPS, PAIR_OPS

EPOCHS = 8
MANY = 1 << 30
STAGES = ("class", "tournament", "shift", "isolated", "ladder", "collective", "retest", "nic", "nic-ladder",
          "nic-retest", "random", "fresh-tx", "fresh-rx", "nic-random", "nic-fresh-tx", "nic-fresh-rx")
#: stages whose pairs left NVLink for their NICs
NIC_STAGES = ("nic", "nic-ladder", "nic-retest", "nic-random", "nic-fresh-tx", "nic-fresh-rx")


class Head(NamedTuple):
    """The first line of points.tsv."""

    plan_crc: int
    endpoints: int
    transport: str
    topology_crc: Union[int, None]


def _word(*words: str) -> Callable[[str, Head], str]:
    known = frozenset(words)

    def read(text: str, _: Head) -> str:
        if text not in known:
            raise ValueError(f'"{text:.60}" is not a known word')
        return text

    return read


def _int(least: int, most: int) -> Callable[[str, Head], int]:
    return lambda text, _: whole(text, least, most)


def _seconds(text: str, _: Head) -> float:
    return float("nan") if text == "nan" else decimal(text, 1e9)


def _ranks(least: int) -> Callable[[str, Head], int]:
    return lambda text, head: whole(text, least, head.endpoints)


def _endpoint(least: int) -> Callable[[str, Head], int]:
    return lambda text, head: whole(text, least, head.endpoints - 1)


#: column of points.tsv: how it is read
COLUMNS: dict[str, Callable[[str, Head], Any]] = {
    "round": _int(0, MANY), "group": _int(0, MANY), "epoch": _int(0, EPOCHS - 1), "stage": _word(*STAGES),
    "op": _word(*OPS, *PAIR_OPS), "ranks": _ranks(2), "src": _endpoint(0), "dst": _endpoint(0), "flows": _ranks(1),
    "bytes": lambda text, _: size(text), "n": _int(0, MANY), "sec": _seconds, "sec_lo": _seconds, "sec_hi": _seconds,
    "sec_min": _seconds, "sec_p5": _seconds, "sec_p95": _seconds, "sec_max": _seconds, "sec_mad": _seconds,
    "slowest": _endpoint(-1), "skew_sec": _seconds, "late": _endpoint(-1),
    "stop": _word("ci", "time", "count", "failed"), "check": _word("no", "ok", "wrong"), "note": lambda text, _: text,
}
#: columns that files of older versions lack; "-": not known
KIND = {
    "dtype": _word("-", "int8", "uint8", "int32", "uint32", "int64", "uint64", "float16", "float32", "float64", "bfloat16",
                   "float8e4m3", "float8e5m2"),
    "redop": _word("-", "sum", "prod", "max", "min", "avg"),
    "registration": _word("-", "none", "buffer", "symmetric"),
}
_HEAD = re.compile(r"# railgauge-points ([0-9]+) plan=([0-9a-f]{1,8}) endpoints=([0-9]+) transport=(\S{1,15})"
                   r"(?: topology=([0-9a-f]{1,8}))?")


def _read_head(path: Path, line: str) -> Head:
    match = _HEAD.fullmatch(line)
    if not match:
        raise Error(f'{path}:1: not a railgauge-points file: "{line:.60}"')
    if int(match[1]) != 1:
        raise Error(f"{path}:1: version {match[1]} is not 1")
    try:
        endpoints = whole(match[3], 2, 1 << 24)
    except ValueError as why:
        raise Error(f"{path}:1: endpoints={why}") from None
    return Head(int(match[2], 16), endpoints, match[4], int(match[5], 16) if match[5] else None)


def _is_whole(row: bytes) -> bool:
    """Does the row carry the CRC of its own text?"""
    text, tab, crc = row.rpartition(b"\t")
    return bool(tab) and crc == b"%08x" % crc32c(text + tab)


def _read_row(path: Path, number: int, text: str, head: Head, columns: dict[str, Callable[[str, Head], Any]]) -> dict:
    cells = text.split("\t")
    if len(cells) != len(columns) + 1:
        raise Error(f"{path}:{number}: {len(cells)} columns where {len(columns) + 1} are needed")
    row = dict.fromkeys(KIND, "-")
    for (name, read), cell in zip(columns.items(), cells):
        try:
            row[name] = read(cell, head)
        except ValueError as why:
            raise Error(f"{path}:{number}: column {name}: {why}") from None
    if row["stop"] != "failed" and not row["sec"] > 0:
        raise Error(f"{path}:{number}: column sec: time {row['sec']:g} is not positive")
    return row


def read_points(path: Path) -> tuple[Head, Table]:
    """points.tsv: its first line, and a row a point.

    ``bytes`` is S as nccl-tests counts it (the largest buffer of one rank), all ``sec`` are seconds over the samples
    of the slowest rank; ``slowest`` and ``late`` are endpoints, -1: not known.  A torn last line is ignored, as the
    programs ignore it; any other row without its CRC is an error.
    """
    lines = read_bytes(path, TSV_MAX).split(b"\n")
    lines.pop()  # what follows the last newline: nothing, or a torn tail
    if not lines:
        raise Error(f"{path}: no header")
    head, table, header, columns = _read_head(path, clean_line(path, 1, lines[0])), Table(), False, COLUMNS
    for number, line in enumerate(lines[1:], 2):
        torn = number == len(lines) and header and not line.startswith(b"#") and not _is_whole(line)
        if torn:
            break
        text = clean_line(path, number, line)
        if text.startswith("#"):
            continue
        if not header:
            columns = {**COLUMNS, **KIND} if "\tdtype\t" in text else COLUMNS
            names = [*columns, "crc32c"]
            if text.split("\t") != names:
                column = next((i for i, (a, b) in enumerate(zip(text.split("\t"), names)) if a != b), -1)
                raise Error(f"{path}:{number}: column {column + 1} of the header is not as it must be")
            header = True
        elif not _is_whole(line):
            raise Error(f"{path}:{number}: CRC does not match the row")
        else:
            table.append(_read_row(path, number, text, head, columns))
    return head, table


# --- the plan ---

class Round(NamedTuple):
    """Groups that are measured at the same time."""

    round: int
    stage: str
    op: str
    bytes_from: int
    bytes_to: int
    factor: int  #: from one size to the next
    epochs: tuple[int, ...]
    groups: list[list[int]]  #: the endpoints of each, in rank order


_PLAN = ("round", "stage", "op", "bytes_from", "bytes_to", "factor", "epochs", "groups")
_GROUP = re.compile(r"[0-9]+(?:-[0-9]+)?(?:,[0-9]+(?:-[0-9]+)?)*")
_PAIR = re.compile(r"[0-9]+>[0-9]+")


def _members(text: str, pair: bool, endpoints: int) -> list[int]:
    if not (_PAIR if pair else _GROUP).fullmatch(text):
        raise ValueError(f'"{text:.40}" is not a group of endpoints 0..{endpoints - 1}')
    members: list[int] = []
    for part in re.split("[>,]", text):
        first, _, last = part.partition("-")
        if len(last or first) > 9 or not int(first) <= int(last or first) < endpoints:
            raise ValueError(f'"{text:.40}" is not a group of endpoints 0..{endpoints - 1}')
        members += range(int(first), int(last or first) + 1)
    if len(members) < 2:
        raise ValueError(f'"{text:.40}" is not a group of two or more')
    return members


def _groups(text: str, pair: bool, endpoints: int) -> list[list[int]]:
    groups = [_members(group, pair, endpoints) for group in text.split(" ") if group]
    if not groups:
        raise ValueError("no groups")
    seen: set[int] = set()
    for group in groups:
        for id in group:
            if id in seen:
                raise ValueError(f"endpoint {id} is twice in this round")
            seen.add(id)
    return groups


def _round(cells: list[str], follows: int, endpoints: int) -> Round:
    stage, op, epochs = cells[1], cells[2], cells[6]
    if whole(cells[0], 0, MANY) != follows:
        raise ValueError(f"round {cells[0]} where {follows} follows")
    if stage not in STAGES or op not in (*OPS, *PAIR_OPS):
        raise ValueError(f'"{stage:.40}" is not a stage' if stage not in STAGES else f'"{op:.40}" is not an operation')
    first, last = size(cells[3]), size(cells[4])
    if not 1 <= first <= last:
        raise ValueError(f"sizes {first} to {last}")
    if not re.fullmatch(r"[0-7](?:,[0-7])*", epochs):
        raise ValueError(f'"{epochs:.40}" is not a list of epochs 0..{EPOCHS - 1}')
    return Round(follows, stage, op, first, last, whole(cells[5], 2, 1024),
                 tuple(sorted({int(epoch) for epoch in epochs.split(",")})), _groups(cells[7], op in PAIR_OPS, endpoints))


def read_plan(path: Path, endpoints: int) -> list[Round]:
    """plan.tsv of a topology with that many endpoints."""
    header = False
    rounds: list[Round] = []
    for number, line in clean_lines(path, read_bytes(path, TSV_MAX)):
        if number == 1 and line != "# railgauge-plan 1":
            raise Error(f"{path}:1: not a railgauge-plan file of version 1")
        if line.startswith("#") or not line:
            continue
        cells = line.split("\t")
        if not header:
            header = True
            if tuple(cells) != _PLAN:
                raise Error(f"{path}:{number}: the columns are not {' '.join(_PLAN)}")
            continue
        try:
            if len(cells) != len(_PLAN):
                raise ValueError(f"{len(cells)} columns where the header has {len(_PLAN)}")
            rounds.append(_round(cells, len(rounds), endpoints))
        except ValueError as why:
            raise Error(f"{path}:{number}: {why}") from None
    if not rounds:
        raise Error(f"{path}: no rounds")
    return rounds


def _members_text(members: list[int], pair: bool) -> str:
    if pair:
        return f"{members[0]}>{members[1]}"
    runs: list[list[int]] = []
    for id in members:
        if runs and id == runs[-1][1] + 1:
            runs[-1][1] = id
        else:
            runs.append([id, id])
    return ",".join(f"{a}-{b}" if b > a else f"{a}" for a, b in runs)


def plan_crc(rounds: list[Round]) -> int:
    """What ties points to their plan: the CRC32C of its text as the programs write it."""
    text = "# railgauge-plan 1\n" + "\t".join(_PLAN) + "\n"
    for r in rounds:
        groups = " ".join(_members_text(group, r.op in PAIR_OPS) for group in r.groups)
        text += "\t".join(map(str, (*r[:6], ",".join(map(str, r.epochs)), groups))) + "\n"
    return crc32c(text.encode())
