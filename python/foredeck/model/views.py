"""Stored fields, read by the names and types that a document's class gives them.

A listing reads a field or two of thousands of versions, so nothing is validated and no document is
made: what was stored was validated then.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from types import UnionType
from typing import Any, ClassVar, TypeVar, Union, cast, get_args, get_origin

from pydantic import BaseModel

M = TypeVar("M", bound=BaseModel)


def view_of(kind: type[M], fields: Mapping[str, Any]) -> M:
    """The fields of a version, or of a part of one, as attributes. Its methods are not there.

    A field that the version lacks has its default, as in versions from before there was that field.
    Raises `KeyError` for one without a default, and for `content`, which is loaded with `get`.
    """
    return cast(M, _class_of(kind)(fields))


class _View:
    __slots__ = ("_fields",)

    _kind: ClassVar[type[BaseModel]]

    def __init__(self, fields: Mapping[str, Any]) -> None:
        self._fields = fields

    def __getattr__(self, name: str) -> Any:
        # Once for each field of a class: from then on it is found as a property.
        setattr(type(self), name, _property(self._kind, name))
        return getattr(self, name)


@cache
def _class_of(kind: type[BaseModel]) -> type[_View]:
    return type("_View", (_View,), {"__slots__": (), "_kind": kind})


def _property(kind: type[BaseModel], name: str) -> property:
    known = kind.model_fields.get(name)
    part = None if known is None else _part(known.annotation)
    default: Any = None  # called where the field is absent
    if known is not None and not known.is_required() and name != "content":
        default = known.default_factory or (lambda: known.default)

    def read(view: _View) -> Any:
        try:
            value = view._fields[name]
        except KeyError:
            if default is None:
                raise
            return default()
        return view_of(part, value) if part is not None and isinstance(value, dict) else value

    return property(read)


def _part(annotation: Any) -> type[BaseModel] | None:
    """The class of a field that is a model of its own; None for all others."""
    is_union = get_origin(annotation) in (Union, UnionType)
    for each in get_args(annotation) if is_union else (annotation,):
        if isinstance(each, type) and issubclass(each, BaseModel):
            return each
    return None
