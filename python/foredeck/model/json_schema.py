"""The subset of JSON Schema for pages of working memory; unknown keywords are refused."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

_TYPES: Mapping[str, tuple[type, ...]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "null": (type(None),),
}
_KNOWN = frozenset(
    {"type", "properties", "required", "additionalProperties", "items", "enum", "maxLength"}
    | {"maxItems", "title", "description", "default", "examples", "$schema", "$id", "$comment"}
)
_VALUES: Mapping[str, tuple[type, str]] = {
    "properties": (dict, "a table of schemas"),
    "enum": (list, "a list"),
    "maxLength": (int, "a whole number"),
    "maxItems": (int, "a whole number"),
}


def check_schema(schema: Mapping[str, Any], place: str = "") -> None:
    here = f"{place}: " if place else ""
    if unknown := sorted(schema.keys() - _KNOWN):
        raise ValueError(
            f"{here}{unknown[0]!r} is not known; known are {', '.join(sorted(_KNOWN))}"
        )
    types = schema.get("type")
    for name in types if isinstance(types, list) else [types]:
        if name is not None and not (isinstance(name, str) and name in _TYPES):
            raise ValueError(f"{here}{name!r} is no type; types are {', '.join(_TYPES)}")
    for keyword, (kind, what) in _VALUES.items():
        value = schema.get(keyword)
        if value is not None and (not isinstance(value, kind) or isinstance(value, bool)):
            raise ValueError(f"{here}{keyword!r} must be {what}")
    inner = {**(schema.get("properties") or {}), "items": schema.get("items")}
    for name, below in inner.items():
        if below is not None and not isinstance(below, dict):
            raise ValueError(f"{here}{name!r} must be a schema, a table")
        if below is not None:
            check_schema(below, _below(place, name))


def faults(value: Any, schema: Mapping[str, Any], place: str = "") -> Iterator[str]:
    """What the schema forbids in a value, a sentence each, in order."""
    type_names = schema.get("type")
    types = (
        type_names if isinstance(type_names, list) else [] if type_names is None else [type_names]
    )
    here = place or "the page"
    if types and not any(_is(value, name) for name in types):
        yield f"{here} must be {' or '.join(types)}"
        return
    if "enum" in schema and value not in schema["enum"]:
        yield f"{here} must be one of {json.dumps(schema['enum'], ensure_ascii=False)}"
    if isinstance(value, str) and len(value) > schema.get("maxLength", len(value)):
        yield f"{here} may have {schema['maxLength']:,} characters, not {len(value):,}"
    if isinstance(value, list):
        if len(value) > schema.get("maxItems", len(value)):
            yield f"{here} may have {schema['maxItems']:,} entries, not {len(value):,}"
        for number, item in enumerate(value):
            yield from faults(item, schema.get("items") or {}, f"{place}[{number}]")
    if isinstance(value, dict):
        yield from _faults_of_object(value, schema, place)


def _faults_of_object(
    value: Mapping[str, Any], schema: Mapping[str, Any], place: str
) -> Iterator[str]:
    properties = schema.get("properties") or {}
    for name, item in value.items():
        if name in properties:
            yield from faults(item, properties[name], _below(place, name))
        elif schema.get("additionalProperties") is False:
            names = ", ".join(properties) or "none"
            yield f"{_below(place, name)} is not in the schema: its fields are {names}"


def _below(place: str, name: str) -> str:
    return f"{place}.{name}" if place else name


def _is(value: Any, name: str) -> bool:
    if isinstance(value, bool):
        return name == "boolean"
    return isinstance(value, _TYPES[name])
