"""Stored fields, read by the names and types that a document's class gives them.

A listing reads a field or two of thousands of versions, so nothing is validated and no document is
made: what was stored was validated then.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from types import UnionType
from typing import Any, TypeVar, Union, cast, get_args, get_origin

from pydantic import BaseModel

M = TypeVar("M", bound=BaseModel)


def view_of(kind: type[M], fields: Mapping[str, Any]) -> M:
    """The fields of a version, or of a part of one, as attributes. Its methods are not there.

    A field that the version lacks has its default, as in versions from before there was that field.
    Raises `KeyError` for one without a default, and for `content`, which is loaded with `get`.
    """
    return cast(M, _View(kind, fields))


class _View:
    __slots__ = ("_fields", "_kind")

    def __init__(self, kind: type[BaseModel], fields: Mapping[str, Any]) -> None:
        self._kind, self._fields = kind, fields

    def __getattr__(self, name: str) -> Any:
        try:
            value = self._fields[name]
        except KeyError:
            return _default(self._kind, name)
        part = _part(self._kind, name) if isinstance(value, dict) else None
        return value if part is None else view_of(part, value)


def _default(kind: type[BaseModel], name: str) -> Any:
    known = kind.model_fields[name]
    if name == "content" or known.is_required():
        raise KeyError(name)
    return known.get_default(call_default_factory=True)


@cache
def _part(kind: type[BaseModel], name: str) -> type[BaseModel] | None:
    """The class of a field that is a model of its own; None for all others."""
    known = kind.model_fields.get(name)
    annotation = None if known is None else known.annotation
    is_union = get_origin(annotation) in (Union, UnionType)
    for each in get_args(annotation) if is_union else (annotation,):
        if isinstance(each, type) and issubclass(each, BaseModel):
            return each
    return None
