"""Names of things that are not files on a disk: `git:REV:PATH`, URLs, `s3://`, `row:`.

Reading such a name touches nothing; of git alone something is read (`git.py`).
"""

from __future__ import annotations

import re
from typing import NamedTuple
from urllib.parse import urlsplit, urlunsplit

from foredeck.errors import ToolError
from foredeck.model.documents import PointerDocument
from foredeck.model.sources import PointerSource, RowSource, S3Source, UrlSource
from foredeck.sources.versions import file_type_of

MAX_CHARS = 4096
_BLOB = re.compile(r"[0-9a-f]{7,64}")


class GitName(NamedTuple):
    """A revision and a path in it; for a blob its id and no path."""

    revision: str
    path: str


def git_name(name: str) -> GitName | None:
    """The parts of `git:REV:PATH` or `git:BLOB`; None for a name that is not git's.

    Raises `ToolError` where a part is missing.
    """
    if name[:4].lower() != "git:":
        return None
    revision, colon, path = name[4:].strip().partition(":")
    if revision and colon and path:
        return GitName(revision, path)
    if not colon and _BLOB.fullmatch(revision):
        return GitName(revision, "")
    raise ToolError(
        f"{name!r} lacks a part: write git:REV:PATH, such as git:HEAD~3:src/a.py, or git:BLOB with "
        "at least 7 digits of the blob's id."
    )


def pointer(name: str) -> PointerDocument:
    """The sealed object of a URL, an object in S3 or a row; nothing is fetched.

    Raises `ToolError` where the name is none.
    """
    name = name.strip()
    if len(name) > MAX_CHARS:
        raise ToolError(f"A pointer has {MAX_CHARS:,} characters at most.")
    source, locator = _row(name) if name[:4].lower() == "row:" else _web(name)
    return PointerDocument.of(source, locator, _file_type(source))


def _web(name: str) -> tuple[PointerSource, str]:
    try:
        parts = urlsplit(name)
        host = parts.netloc.rpartition("@")[2].lower()  # a password is nobody's business
        _ = parts.port
    except ValueError as error:
        raise ToolError(f"{name!r} is no URL: {error}.") from error
    key = parts.path.lstrip("/")
    if parts.scheme == "s3":
        bucket = parts.netloc
        if not bucket or not key:
            raise ToolError(f"{name!r} lacks a part: write s3://BUCKET/KEY.")
        rest = name.partition("://")[2].partition("/")[2]
        return S3Source(bucket=bucket, key=rest), f"s3://{bucket}/{rest}"
    if not host:
        raise ToolError(f"{name!r} names no host: write https://HOST/PATH.")
    url = urlunsplit((parts.scheme, host, parts.path or "/", parts.query, parts.fragment))
    return UrlSource(url=url), url


def _row(name: str) -> tuple[PointerSource, str]:
    database, *rest = name[4:].rsplit("/", 2)
    if not database or len(rest) < 2 or not all(rest):
        raise ToolError(f"{name!r} lacks a part: write row:DATABASE/TABLE/KEY.")
    table, key = rest
    return RowSource(database=database, table=table, key=key), f"row:{database}/{table}/{key}"


def _file_type(source: PointerSource) -> str:
    if isinstance(source, UrlSource):
        return file_type_of(urlsplit(source.url).path)
    return file_type_of(source.key) if isinstance(source, S3Source) else ""
