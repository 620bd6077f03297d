# SPDX-License-Identifier: BSD-3-Clause
"""The JSON schemas that ship with railgauge, and as much of JSON Schema as they use."""

from __future__ import annotations

import functools
import json
import pathlib
import re
from typing import Any, Callable

_HERE = pathlib.Path(__file__).resolve().parent
# in a wheel; as the sources and `make install` have them
_FOLDERS = (_HERE / "schema", *(_HERE.parents[2] / folder / "schema" for folder in ("src", "topo")))


class Unfit(Exception):
    """Where a value is not what its schema says, and why."""


_TYPES: dict[str, Any] = {"object": dict, "array": list, "string": str, "boolean": bool, "null": type(None), "integer": int,
          "number": (int, float)}
_WORDS = {"object": "an object", "array": "a list", "string": "text", "boolean": "true or false", "null": "null",
          "integer": "a whole number", "number": "a number"}


def _is(value: Any, kind: str) -> bool:
    return isinstance(value, _TYPES[kind]) and (kind == "boolean" or not isinstance(value, bool))


def _shown(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= 60 else text[:60] + " ..."


def _type(rule: Any, value: Any) -> str | None:
    kinds = rule if isinstance(rule, list) else [rule]
    if any(_is(value, kind) for kind in kinds):
        return None
    return f"{_shown(value)} is not {' or '.join(_WORDS[kind] for kind in kinds)}"


def _compare(kind: Any, fits: Callable[[Any, Any], bool], words: str) -> Callable[[Any, Any], str | None]:
    def check(rule: Any, value: Any) -> str | None:
        if not isinstance(value, kind) or isinstance(value, bool) or fits(value, rule):
            return None
        return f"{_shown(value)} {words} {_shown(rule)}"

    return check


_NUMBER = (int, float)
# what looks at one value alone
_RULES: dict[str, Callable[[Any, Any], str | None]] = {
    "type": _type,
    "const": lambda rule, value: None if value == rule and type(value) is type(rule)
    else f"{_shown(value)} where {_shown(rule)} is needed",
    "enum": lambda rule, value: None if value in rule else f"{_shown(value)} is not a known word",
    "minimum": _compare(_NUMBER, lambda value, rule: value >= rule, "is below"),
    "exclusiveMinimum": _compare(_NUMBER, lambda value, rule: value > rule, "is not above"),
    "maximum": _compare(_NUMBER, lambda value, rule: value <= rule, "is above"),
    "minItems": _compare(list, lambda value, rule: len(value) >= rule, "has fewer items than"),
    "maxItems": _compare(list, lambda value, rule: len(value) <= rule, "has more items than"),
    "uniqueItems": _compare(list, lambda value, rule: len({_shown(item) for item in value}) == len(value),
                            "has an item twice, unique:"),
    "minLength": _compare(str, lambda value, rule: len(value) >= rule, "has fewer characters than"),
    "maxLength": _compare(str, lambda value, rule: len(value.encode()) <= rule, "has more bytes than"),
    "maxProperties": _compare(dict, lambda value, rule: len(value) <= rule, "has more keys than"),
    "pattern": _compare(str, lambda value, rule: re.search(rule, value) is not None, "is not like"),
}
_SKIPPED = {"$schema", "$id", "$defs", "title", "description", "required", "additionalProperties", "propertyNames",
            "patternProperties", "properties"}


class Schema:
    """One schema; check() raises Unfit with the place of the first value that is not as it says."""

    def __init__(self, root: dict):
        self.root = root

    @classmethod
    @functools.lru_cache(maxsize=None)
    def named(cls, kind: str) -> Schema:
        """The schema of ``railgauge-KIND`` files; LookupError: there is none."""
        for path in (folder / f"{kind}.schema.json" for folder in _FOLDERS):
            if path.is_file():
                return cls(json.loads(path.read_text(encoding="utf-8")))
        raise LookupError(f"no schema of railgauge-{kind} in {', '.join(map(str, _FOLDERS))}")

    def check(self, value: Any) -> None:
        self._check(self.root, value, "")

    def _check(self, schema: Any, value: Any, at: str) -> None:
        if schema is True:
            return
        if schema is False:
            raise Unfit(f"{at}: not allowed here")
        for keyword, rule in schema.items():
            if keyword in _RULES:
                why = _RULES[keyword](rule, value)
                if why:
                    raise Unfit(f"{at}: {why}" if at else why)
            elif keyword not in _SKIPPED:
                getattr(self, "_" + keyword.lstrip("$"))(schema, value, at)
        if isinstance(value, dict):
            self._keys(schema, value, at)

    def _keys(self, schema: dict, value: dict, at: str) -> None:
        known, patterns = schema.get("properties", {}), schema.get("patternProperties", {})
        for key in schema.get("required", ()):
            if key not in value:
                raise Unfit(f'{at + ": " if at else ""}key "{key}" is missing')
        for key, item in value.items():
            self._check(schema.get("propertyNames", True), key, f"{at}.{key}")
            rules = [known[key]] if key in known else [rule for like, rule in patterns.items() if re.search(like, key)]
            if not rules and schema.get("additionalProperties", True) is False:
                raise Unfit(f'{at + ": " if at else ""}unknown key: {key}')
            for rule in rules or [schema.get("additionalProperties", True)]:
                self._check(rule, item, f"{at}.{key}" if at else key)

    def _prefixItems(self, schema: dict, value: Any, at: str) -> None:
        for i, (rule, item) in enumerate(zip(schema["prefixItems"], value if isinstance(value, list) else ())):
            self._check(rule, item, f"{at}[{i}]")

    def _items(self, schema: dict, value: Any, at: str) -> None:
        first = len(schema.get("prefixItems", ()))
        for i, item in enumerate(value[first:] if isinstance(value, list) else (), first):
            self._check(schema["items"], item, f"{at}[{i}]")

    def _ref(self, schema: dict, value: Any, at: str) -> None:
        rule: Any = self.root
        for step in schema["$ref"].lstrip("#/").split("/"):
            rule = rule[step]
        self._check(rule, value, at)

    def _fitting(self, rules: list, value: Any, at: str) -> tuple[int, str]:
        fit, why = 0, ""
        for rule in rules:
            try:
                self._check(rule, value, at)
                fit += 1
            except Unfit as unfit:
                why = str(unfit)
        return fit, why

    def _anyOf(self, schema: dict, value: Any, at: str) -> None:
        fit, why = self._fitting(schema["anyOf"], value, at)
        if not fit:
            raise Unfit(why)

    def _oneOf(self, schema: dict, value: Any, at: str) -> None:
        fit, why = self._fitting(schema["oneOf"], value, at)
        if fit != 1:
            raise Unfit(why or f"{at}: fits {fit} of the things that it could be")

    def _dependentRequired(self, schema: dict, value: Any, at: str) -> None:
        for key, needed in schema["dependentRequired"].items():
            for other in needed:
                if isinstance(value, dict) and key in value and other not in value:
                    raise Unfit(f'{at + ": " if at else ""}"{key}" without "{other}"')
