"""Names in remarks are found, and those that nothing vouches for are marked."""

from __future__ import annotations

import pytest

from foredeck.model.names import files_in, names_in
from foredeck.observations.observers import KnownNames, dropped, unfounded


@pytest.mark.parametrize(
    ("text", "files"),
    [
        ("Agent changed src/auth/index.ts:45-60 and utils.py.", ["src/auth/index.ts", "utils.py"]),
        ("read/write access and/or more, e.g. 3.12", []),
        ("/server/routes holds it, see ~/notes/a.md", ["/server/routes", "~/notes/a.md"]),
        ("see https://example.org/a/b.html for more", []),
        ("User.validate and user.id", []),
        ("ran ./scripts/setup in ../other/place", ["./scripts/setup", "../other/place"]),
    ],
)
def test_files_are_found(text: str, files: list[str]) -> None:
    assert files_in(text) == files


def test_names_are_paths_addresses_and_identifiers() -> None:
    text = "validateEmail(email: string) in src/v.ts, UserService.save, MAX_SIZE and http://x.org/y"
    found = names_in(text)
    assert found[:2] == ["http://x.org/y", "src/v.ts"]
    assert {"validateEmail", "UserService.save", "MAX_SIZE"} <= {*found}
    assert names_in("The user wants it done soon, and asked why.") == []


def test_what_stands_in_no_source_is_named() -> None:
    known = KnownNames(["edit /repo/src/v.ts\nfunction validateEmail() {}\nclass User { save() }"])
    text = "validateEmail in src/v.ts, src/w.ts has checkPhone(), User.save and User.load"
    assert unfounded(text, known) == ["src/w.ts", "checkPhone", "User.load"]


def test_a_path_below_the_folder_of_the_session_is_known_without_it() -> None:
    assert unfounded("changed /repo/src/v.ts", KnownNames(["src/v.ts"], "/repo")) == []
    assert unfounded("changed /else/v.ts", KnownNames(["src/v.ts"], "/repo")) == ["/else/v.ts"]


def test_names_that_a_shorter_text_leaves_out() -> None:
    assert dropped(["src/a.py has load_all()", "src/b.py"], "src/a.py loads") == [
        "load_all",
        "src/b.py",
    ]
