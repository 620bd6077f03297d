# SPDX-License-Identifier: BSD-3-Clause
"""Files of railgauge: read whole, checked, and refused with a sentence."""

from __future__ import annotations

import json
import os
import re
import stat
import warnings
from typing import Any, Iterable, Union

from .schema import Schema, Unfit

Path = Union[str, "os.PathLike[str]"]

JSON_MAX = 1 << 30  # bytes
TSV_MAX = 8 << 30
NAMES_MAX = 1 << 20  # of a host list: a short text can stand for very many

# C0, DEL and C1: they steer terminals
CONTROL = re.compile("[\x00-\x1f\x7f-\x9f]")
_CONTROL_BUT_TAB = re.compile("[\x00-\x08\x0a-\x1f\x7f-\x9f]")
_IN_TEXTS = re.compile(rb"[\x00-\x1f\x7f]|\xc2[\x80-\x9f]|\\u00[01789]|\\[bfnrt]", re.I)


class Error(Exception):
    """What is wrong, in one sentence that names file, key or line, and value."""


class Table(list):
    """Rows, each a dict with the same keys; what a key's unit is, its name says (``sec``, ``bytes``, ``GBps``)."""

    def column(self, name: str) -> list:
        """The values of one column, in the order of the rows."""
        return [row[name] for row in self]

    def where(self, **values: Any) -> Table:
        """The rows in which these columns have these values: ``points.where(op="pair_bw", tier="rail")``."""
        return Table(row for row in self if all(row[key] == value for key, value in values.items()))

    def frame(self) -> Any:
        """The same as a pandas.DataFrame; ImportError where pandas is not installed."""
        import pandas

        return pandas.DataFrame(list(self))


def _crc_table() -> list[int]:
    table = []
    for c in range(256):
        for _ in range(8):
            c = c >> 1 ^ 0x82F63B78 if c & 1 else c >> 1
        table.append(c)
    return table


_CRC = _crc_table()


def crc32c(data: bytes, crc: int = 0) -> int:
    """CRC32C (Castagnoli, RFC 3720 appendix B.4) of data that follows what ``crc`` is of."""
    crc ^= 0xFFFFFFFF
    table = _CRC
    for byte in data:
        crc = table[(crc ^ byte) & 0xFF] ^ (crc >> 8)
    return crc ^ 0xFFFFFFFF


def read_bytes(path: Path, most: int) -> bytes:
    """The bytes of a regular file of at most ``most``."""
    try:
        status = os.stat(path)
        if not stat.S_ISREG(status.st_mode):  # a pipe would wait for its writer
            raise Error(f"{path}: not a regular file")
        if status.st_size > most:
            raise Error(f"{path}: {status.st_size} bytes is more than the {most} that this format may have")
        with open(path, "rb") as file:
            return file.read()
    except OSError as why:
        raise Error(f"{path}: {why.strerror}") from None


# --- the seal: "checksum": the CRC32C of the text without white space outside of strings, with zeros for its digits ---

_STRING = rb'"(?:[^"\\]|\\.)*"'
_SEAL = re.compile(rb'"checksum"[ \n\t\r]*:[ \n\t\r]*"([0-9a-f]{8})"')
_TOKEN = re.compile(rb"(%s)|([{}\[\]])|[ \n\t\r]+|[^\"{}\[\] \n\t\r]+" % _STRING, re.S)


def seal(text: bytes) -> tuple[str | None, str]:
    """The checksum that a JSON text carries (None: none) and the one that it should."""
    kept, found, depth, at = [], None, 0, 0
    while at < len(text):
        match = _TOKEN.match(text, at)
        if not match:
            kept.append(text[at:])
            break
        if match[1] and depth == 1 and not found and match[1] == b'"checksum"':
            sealed = _SEAL.match(text, at)
            if sealed:
                found = sealed[1].decode()
                kept.append(b'"checksum":"00000000"')
                at = sealed.end()
                continue
        if match[2]:
            depth += 1 if match[2] in b"{[" else -1
        if not text[at : at + 1].isspace():
            kept.append(match[0])
        at = match.end()
    return found, f"{crc32c(b''.join(kept)):08x}"


def _check_seal(path: Path, root: dict, text: bytes) -> None:
    if "checksum" not in root:
        return
    says, is_ = seal(text)
    if says is None:
        raise Error(f"{path}: its checksum is not 8 hexadecimal digits")
    if says != is_:
        raise Error(f"{path}: its checksum is {says} and its content's {is_}: it has changed since it was written; "
                    f'if you changed it, "railgauge seal {path}" makes it valid')


# --- JSON ---

def _unique(pairs: list[tuple[str, Any]]) -> dict:
    made: dict[str, Any] = {}
    for key, value in pairs:
        if key in made:
            raise ValueError(f'the key "{key}" is there twice')
        made[key] = value
    return made


def _refuse_constant(word: str) -> None:
    raise ValueError(f"{word} is no number of JSON")


def _whole(digits: str) -> int:
    if len(digits) > 19:
        raise ValueError(f"too big integer {digits[:30]}")
    return int(digits)


def _check_texts(value: Any, where: str, path: Path) -> None:
    if isinstance(value, str):
        bad = CONTROL.search(value)
        if bad:
            raise Error(f"{path}: {where}: a control character (0x{ord(bad[0]):02x}) at position {bad.start()}")
    elif isinstance(value, list):
        for i, item in enumerate(value):
            _check_texts(item, f"{where}[{i}]", path)
    elif isinstance(value, dict):
        for key, item in value.items():
            if CONTROL.search(key):
                raise Error(f"{path}: a key with a control character")
            if where or key != "provenance":  # what was typed may have them
                _check_texts(item, f"{where}.{key}" if where else key, path)


def parse_json(text: bytes, path: Path) -> Any:
    """JSON as strict as the C programs read it: keys once, finite numbers, UTF-8."""
    try:
        return json.loads(text.decode("utf-8"), object_pairs_hook=_unique, parse_constant=_refuse_constant,
                          parse_int=_whole)
    except json.JSONDecodeError as why:
        raise Error(f"{path}:{why.lineno}: {why.msg}") from None
    except (ValueError, RecursionError) as why:
        raise Error(f"{path}: {why}") from None


def check_json(root: Any, path: Path, kind: str) -> dict:
    """``root`` if it is what the schema of this kind ("matrix") says; numbers still have to be compared."""
    try:
        schema = Schema.named(kind)
    except LookupError as why:
        raise Error(f"{path}: {why}") from None
    form, version = f"railgauge-{kind}", schema.root["properties"].get("version", {}).get("const")
    given = root.get("format") if isinstance(root, dict) else None
    if given != form:
        raise Error(f'{path}: format is "{given or "(none)"}" where "{form}" is needed')
    if version and (type(root.get("version")) is not int or root["version"] != version):
        raise Error(f"{path}: version {root.get('version', '(none)')!r} of {form} is not the {version} that is read here")
    try:
        schema.check(root)
    except Unfit as why:
        raise Error(f"{path}: {why}") from None
    return root


def read_json(path: Path, kind: str) -> dict:
    """A JSON file of this kind ("matrix", "compare", "history", "search" ...): format, version, checksum and schema are
    checked."""
    text = read_bytes(path, JSON_MAX)
    if text.startswith(b"# railgauge-"):
        raise Error(f'{path}: this is {text[2:60].split()[0].decode("ascii", "replace")} where "railgauge-{kind}" is needed')
    root = check_json(parse_json(text, path), path, kind)
    if _IN_TEXTS.search(text):
        _check_texts(root, "", path)
    _check_seal(path, root, text)
    if "checksum" not in root and "checksum" in Schema.named(kind).root["properties"]:
        if "tool_version" in (root.get("provenance") or {}):
            raise Error(f'{path}: its checksum was removed; if you changed the file, "railgauge seal {path}" makes it valid')
        warnings.warn(f"{path} has no checksum: whether it was changed is not known", stacklevel=3)
    return root


# --- tables with tabs ---

def clean_lines(path: Path, text: bytes) -> Iterable[tuple[int, str]]:
    """The numbered lines of a table; control characters are refused."""
    for number, line in enumerate(text.split(b"\n"), 1):
        if number == 1 and not line:
            continue
        yield number, clean_line(path, number, line)


def clean_line(path: Path, number: int, line: bytes) -> str:
    """A line as text; control characters and what is not UTF-8 are refused."""
    try:
        text = line.decode("utf-8")
    except UnicodeDecodeError:
        raise Error(f"{path}:{number}: not UTF-8") from None
    bad = _CONTROL_BUT_TAB.search(text)
    if bad:
        raise Error(f"{path}:{number}: a control character (0x{ord(bad[0]):02x}) at position {bad.start()}")
    return text


_WHOLE = re.compile(r"-?[0-9]{1,18}")
_DECIMAL = re.compile(r"-?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?")
_SIZE = re.compile(r"([0-9]+\.?[0-9]*)(?:([KMGTPkmgtp])i?)?[Bb]?")


def whole(text: str, least: int, most: int) -> int:
    """A whole number in a range; ValueError with the reason."""
    if not _WHOLE.fullmatch(text):
        raise ValueError(f'"{text:.60}" is not a whole number')
    if not least <= int(text) <= most:
        raise ValueError(f"{text} is outside {least}..{most}")
    return int(text)


def decimal(text: str, most: float) -> float:
    """A finite number of 0..most; ValueError with the reason."""
    if not _DECIMAL.fullmatch(text):
        raise ValueError(f'"{text:.60}" is not a number')
    if not 0 <= float(text) <= most:
        raise ValueError(f"{text} is outside 0..{most:g}")
    return float(text)


def size(text: str) -> int:
    """Bytes: 8, 32K, 1M, 8G (powers of 1024); ValueError with the reason."""
    match = _SIZE.fullmatch(text)
    value = float(match[1]) * 1024 ** (" KMGTP".index((match[2] or " ").upper())) if match else 0.5
    if value != int(value):
        raise ValueError(f'"{text:.60}" is not a size such as 8, 32K, 1M or 8G')
    if value > 1 << 50:
        raise ValueError(f"size {text:.60} is larger than 1 PiB")
    return int(value)


# --- host lists: "rack[01-08]n[1-4],login" ---

def _numbers(inside: str) -> Iterable[str]:
    for one in inside.split(","):
        match = re.fullmatch(r"([0-9]{1,9})(?:-([0-9]{1,9}))?", one)
        if not match or not 0 <= int(match[2] or match[1]) - int(match[1]) < NAMES_MAX:
            raise ValueError(f'bad range in "[{inside:.60}]"')
        for number in range(int(match[1]), int(match[2] or match[1]) + 1):
            yield f"{number:0{len(match[1])}d}"


def _expand(item: str, names: list[str]) -> None:
    head, bracket, rest = item.partition("[")
    if bracket:
        inside, closed, tail = rest.partition("]")
        if not closed or "[" in inside:
            raise ValueError(f'unbalanced brackets in "{item:.60}"')
        for number in _numbers(inside):
            _expand(head + number + tail, names)
        return
    if "]" in item:
        raise ValueError(f'"]" without "[" in "{item:.60}"')
    if not 1 <= len(item.encode()) <= 255 or item.startswith("-"):
        raise ValueError(f'"{item:.60}" is no name of a host')
    names.append(item)
    if len(names) > NAMES_MAX:
        raise ValueError(f"more than {NAMES_MAX} hosts")


def expand_hosts(text: str) -> list[str]:
    """The names of a host list; ValueError with the reason."""
    names: list[str] = []
    for item in re.split(r",(?![^\[]*\])", text):
        _expand(item, names)
    return names
