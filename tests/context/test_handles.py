"""What the model may call an object, and what it is told where that names none, or several."""

from __future__ import annotations

import pytest

from context.driver import Host
from context.messages import lines
from context.scenes import ask, use
from foredeck.context.state.handles import resolve_name
from foredeck.context.tools.listing import listed_objects
from foredeck.errors import ToolError
from foredeck.sources.filesystem import Location
from foredeck.store.protocol import Head, Token

ID = Location("replay", "/repo/src/main.py", None).object_id


@pytest.fixture
def known(host: Host) -> Host:
    """Objects: @3 src/main.py and its call @4, @5 and @6 tests/main.py, @7 and @8 README.md."""
    ask(host)
    for number, path in enumerate(["src/main.py", "tests/main.py", "README.md"]):
        use(host, f"toolu_{number}_abcdef", "read", lines(20, path), path=path)
    return host


def named(host: Host, name: str) -> tuple[int, int | None, int | None]:
    """Handle, version and call that a name stands for."""
    wanted = resolve_name(host.state.objects, name)
    return wanted.entry.ordinal, wanted.version, wanted.call


def refused(host: Host, name: str) -> str:
    with pytest.raises(ToolError) as caught:
        resolve_name(host.state.objects, name)
    return str(caught.value)


@pytest.mark.parametrize(
    "name",
    [
        "@3",
        "3",
        " @3 ",
        "src/main.py",
        "./src/main.py",
        "/repo/src/main.py",
        "/repo/tests/../src/main.py",
        ID,
        ID[:8],
    ],
)
def test_every_form_of_a_name_is_understood(known: Host, name: str) -> None:
    assert named(known, name) == (3, None, None)


@pytest.mark.parametrize(
    ("name", "version", "call"),
    [
        *(("@3 v2", 2, None), ("src/main.py v12", 12, None), ("@3   v2", 2, None)),
        *(("@3 call 5", None, 5), ("@3 as of call 5", None, 5)),
    ],
)
def test_a_version_is_named_behind_the_object(
    known: Host, name: str, version: int | None, call: int | None
) -> None:
    assert named(known, name) == (3, version, call)


def test_a_file_whose_name_looks_like_a_version_is_itself(known: Host) -> None:
    use(known, "n", "read", lines(20), path="notes v2")
    use(known, "m", "read", lines(20, "double"), path="two  spaces.md")
    assert named(known, "notes v2")[1] is None
    assert named(known, "notes v2 v1")[1] == 1
    assert named(known, "two  spaces.md")[1] is None


@pytest.mark.parametrize("name", ["@3 v2 v1", "@3 at 3f2a91bc v1", "@3 call 5 v1"])
def test_a_version_of_a_version_is_refused(known: Host, name: str) -> None:
    with pytest.raises(ToolError, match="No object is called '@3"):
        resolve_name(known.state.objects, name, beyond=True)


@pytest.mark.parametrize(
    ("name", "told"),
    [
        (
            "main.py",
            "'main.py' fits several objects: @3 /repo/src/main.py, @5 /repo/tests/main.py. ",
        ),
        ("toolu_", "'toolu_' fits several objects: @4 toolu_0_abcdef, @6 toolu_1_abcdef"),
        ("too", "No object is called 'too'."),  # too short to mean anything
        ("READNE.md", "No object is called 'READNE.md'. Nearest: @7 /repo/README.md"),
        ("qqqqqqq", "No object is called 'qqqqqqq'. Handles look like @12."),
        ("@99", "There is no @99; handles go from @1 to @8."),
        ("@0", "There is no @0; handles go from @1 to @8."),
        ("", "Say which object: a handle such as @12, a path, or a nickname."),
        ("   ", "Say which object: a handle such as @12, a path, or a nickname."),
    ],
)
def test_what_names_none_or_several_says_what_would(known: Host, name: str, told: str) -> None:
    assert refused(known, name).startswith(told)


def test_many_candidates_are_cut_short(known: Host) -> None:
    for number in range(7):
        use(known, f"x{number}", "read", lines(9, str(number)), path=f"d{number}/same.txt")
    assert refused(known, "same.txt").endswith("\n  and 1 more\nUse the handle.")


def test_a_path_with_a_lone_surrogate_is_a_name(host: Host) -> None:
    ask(host)
    use(host, "c1", "read", lines(20), path="br\udc00ken.txt")
    assert named(host, "br\udc00ken.txt")[0] == 3


def test_a_list_of_objects_reads_them_at_once(known: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    store, one_by_one = known.state.objects.store, list[str]()
    read = store.head

    def counted(id: str, at: Token | None = None) -> Head | None:
        one_by_one.append(id)
        return read(id, at)

    monkeypatch.setattr(store, "head", counted)
    rows = listed_objects(known.state.objects, known.state.chat.branch)
    assert [row.what for row in rows if row.ordinal == 3] == ["src/main.py"]
    assert one_by_one == []
