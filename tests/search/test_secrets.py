"""Keys and tokens stay out of the index, and out of what a search prints."""

from __future__ import annotations

from functools import reduce
from operator import or_
from pathlib import Path

import pytest

from foredeck.search.secrets import MASK, mask_secrets
from foredeck.search.writing import Vocabulary
from search.sessions import Talk, searched

RANDOM = "Zx81Qw77Er55Ty33Ui22Op11As99Df88Gh66Jk44"
SECRETS = [
    f"sk-{RANDOM}",
    f"sk-ant-api03-{RANDOM}",
    f"ghp_{RANDOM}",
    f"github_pat_{RANDOM}",
    f"glpat-{RANDOM[:20]}",
    f"xoxb-1234567890-{RANDOM}",
    "AKIAZX81QW77ER55TY33",
    f"AIza{RANDOM}",
    f"npm_{RANDOM}",
    f"hf_{RANDOM}",
    f"sk_live_{RANDOM}",
    f"eyJhbGciOiJI.eyJzdWIiOiIx{RANDOM}.{RANDOM}",
    f"-----BEGIN RSA PRIVATE KEY-----\n{RANDOM}\n-----END RSA PRIVATE KEY-----",
    f"password = '{RANDOM}'",
    f'"api_key": "{RANDOM}"',
    f"AWS_SECRET_ACCESS_KEY={RANDOM}",
    f"Authorization: Bearer {RANDOM}",
    f"postgres://user:{RANDOM}@host/db",
]
HARMLESS = [
    *("the token count of a message", "password: see the manual", "key = value"),
    *("commit 9e107d9d372bb6826bd81d3542a419d6f00ba1b2", "https://example.com/a@b"),
    *("max_tokens: 4096", "task-list and risk-based"),
]


@pytest.mark.parametrize("secret", SECRETS)
def test_a_secret_is_masked_and_what_stands_around_it_is_not(secret: str) -> None:
    masked = mask_secrets(f"before {secret} after")
    assert MASK in masked
    assert not any(piece in masked for piece in (RANDOM, RANDOM[:20], "AKIAZX81QW77ER55TY33"))
    assert masked.startswith("before ")
    assert masked.endswith(" after")


@pytest.mark.parametrize("secret", SECRETS)
def test_a_word_of_each_secret_tells_of_its_kind(secret: str) -> None:
    text = f"before ({secret}) after"
    signs = reduce(or_, (word.signs for word in Vocabulary().notable(text)))
    assert mask_secrets(text, signs) == mask_secrets(text) != text


@pytest.mark.parametrize("text", HARMLESS)
def test_other_texts_are_left_as_they_are(text: str) -> None:
    assert mask_secrets(text) == text


def test_no_secret_reaches_the_index_or_a_passage(tmp_path: Path) -> None:
    with searched(tmp_path) as stored:
        talk = Talk(stored.store, "one")
        for secret in SECRETS:
            talk.say(user=f"giraffe {secret}")
            talk.run("bash", f"giraffe {secret}", command=f"export A={secret}")
            talk.meet("/repo/.env", f"giraffe {secret}")
        found = stored.find("giraffe", limit=100)
        assert len(found.hits) > 2 * len(SECRETS)
        assert all(RANDOM[:20] not in hit.passage.text for hit in found.hits)
        assert stored.find(RANDOM).total == 0
        written = stored.index_bytes().lower()
    assert b"giraff" in written
    assert RANDOM.lower().encode() not in written
