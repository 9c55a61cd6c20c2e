"""Names of things that are not files on a disk: `git:REV:PATH`, URLs, `s3://`, `row:`.

Reading such a name touches nothing; of git alone something is read (`git.py`).
"""

from __future__ import annotations

from urllib.parse import urlsplit, urlunsplit

from foredeck.errors import ToolError
from foredeck.model.documents import Document, PointerDocument
from foredeck.model.sources import PointerSource, RowSource, S3Source, UrlSource
from foredeck.sources.filesystem import FilesystemMap
from foredeck.sources.git import git_name, repository
from foredeck.sources.projects import project_of
from foredeck.sources.snapshots import file_type_of

MAX_CHARS = 4096


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


def pointed(name: str, filesystems: FilesystemMap, cwd: str | None, max_bytes: int) -> Document:
    """The sealed object of what a name points to: a file as of a commit of the repository that
    `cwd` is in, or what can be said of a URL, an object in S3 or a row without fetching it.

    Raises `ToolError` with what to do.
    """
    asked = git_name(name)
    if asked is None:
        return pointer(name)
    folder = cwd or filesystems.cwd
    local = filesystems.locate(folder).local
    if local is None:
        raise ToolError(f"{folder} cannot be reached from here: read the file with git show.")
    project = project_of(folder, filesystems)
    with repository(local, project.id) as opened:
        return opened.document(asked, max_bytes)
