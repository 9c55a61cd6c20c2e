"""What an object is bound to: file systems, and what a newer version may bind one to."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from foredeck.model.documents import Document, FileDocument, Provenance, identity_hash
from foredeck.model.sources import FilesystemSource, UnknownSource, filesystem_source, path_of

PROVENANCE = Provenance(origin="test", generator="tool")
HERE = {"type": "filesystem", "filesystemId": "fs", "path": "/a.py"}
FOREIGN: list[dict[str, Any]] = [
    {"type": "git", "repository": "https://host/r.git", "commit": "0a" * 20, "path": "/a.py"},
    {"type": "s3", "bucket": "b", "key": "k", "versionId": None},
    {"type": "url", "url": "https://host/page", "headers": {"accept": ["text/html"]}},
]


def file_of(source: dict[str, Any]) -> FileDocument:
    fields = {"id": identity_hash("file", source), "source": source, "provenance": PROVENANCE}
    return FileDocument.model_validate(fields).seal()


def test_a_place_on_a_file_system_is_what_it_was() -> None:
    source = FilesystemSource(filesystemId="fs", path="/a.py")
    file = file_of(HERE)
    assert file.source == source
    assert file.model_dump()["source"] == HERE
    assert file.id == file.identity_hash
    assert file.id == "6ffe093620d5c8318966eed586e727fb5e0e5eb1ec9012234cc677f258b8505d"
    assert (filesystem_source(file.model_dump()), path_of(file.model_dump())) == (source, "/a.py")


@pytest.mark.parametrize("source", FOREIGN, ids=lambda source: str(source["type"]))
def test_an_unknown_kind_is_kept_as_given(source: dict[str, Any]) -> None:
    file = file_of(source)
    assert isinstance(file.source, UnknownSource)
    again = Document.model_validate(file.model_dump())
    assert again.model_dump()["source"] == source
    assert file.identity_hash == identity_hash("file", source)
    assert (filesystem_source(file.model_dump()), path_of(file.model_dump())) == (None, None)


@pytest.mark.parametrize(
    "source",
    [{**HERE, "more": 1}, {"type": "filesystem"}, {"type": 3}, "/a.py", []],
    ids=["more", "less", "no name", "text", "list"],
)
def test_what_is_no_source_is_refused(source: object) -> None:
    fields = {"id": "a", "type": "file", "source": source, "provenance": PROVENANCE}
    with pytest.raises(ValidationError):
        FileDocument.model_validate(fields)
