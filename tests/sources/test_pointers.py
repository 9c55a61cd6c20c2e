"""URLs, objects in S3 and rows: pointed to, never fetched."""

from __future__ import annotations

import pytest

from foredeck.errors import ToolError
from foredeck.model.documents import Document, identity_hash
from foredeck.sources.git import pointer


@pytest.mark.parametrize(
    ("name", "source", "locator", "file_type"),
    [
        (
            "HTTPS://me:secret@Example.com/docs/API.md?v=2#auth",
            {"type": "url", "url": "https://example.com/docs/API.md?v=2#auth"},
            "https://example.com/docs/API.md?v=2#auth",
            "md",
        ),
        (
            "http://localhost:8080",
            {"type": "url", "url": "http://localhost:8080/"},
            "http://localhost:8080/",
            "",
        ),
        (
            "s3://My-Bucket/data/in.csv",
            {"type": "s3", "bucket": "My-Bucket", "key": "data/in.csv"},
            "s3://My-Bucket/data/in.csv",
            "csv",
        ),
        (
            "s3://b/a key#1?x",
            {"type": "s3", "bucket": "b", "key": "a key#1?x"},
            "s3://b/a key#1?x",
            "",
        ),
        (
            "row:/srv/orders.db/customers/42",
            {"type": "row", "database": "/srv/orders.db", "table": "customers", "key": "42"},
            "row:/srv/orders.db/customers/42",
            "",
        ),
    ],
)
def test_a_name_says_all_that_is_known(
    name: str, source: dict[str, str], locator: str, file_type: str
) -> None:
    found = pointer(name)
    assert found.model_dump()["source"] == source
    assert found.id == identity_hash("pointer", source)
    assert (found.content, found.locator, found.file_type) == (None, locator, file_type)
    assert pointer(locator) == found
    assert Document.model_validate(found.model_dump()).model_dump() == found.model_dump()
    assert found.metadata_view()[2:] == [["locator", locator], ["file_type", file_type]]


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("https:///path", "names no host"),
        ("https://host:port/", "is no URL"),
        ("https://[::1/", "is no URL"),
        ("s3://bucket", "write s3://BUCKET/KEY"),
        ("s3:///key", "write s3://BUCKET/KEY"),
        ("row:table/1", "write row:DATABASE/TABLE/KEY"),
        ("row:a//b", "write row:DATABASE/TABLE/KEY"),
        ("https://host/" + "x" * 5000, "4,096 characters at most"),
    ],
)
def test_what_is_none_says_how_to_write_one(name: str, words: str) -> None:
    with pytest.raises(ToolError) as refused:
        pointer(name)
    assert words in str(refused.value)
