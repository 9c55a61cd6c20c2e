"""What stands in the prompt without a handle, and bytes that are no text."""

from __future__ import annotations

import pytest

from context.driver import Host
from context.messages import assistant, calls, lines, result, user
from context.scenes import ask, bash, context_tool, use
from context.sent import last

OUTPUT = lines(30, "output")
GARBLED = "\x7fELF\x02\x01\x00" + "\ufffd\ufffdx" * 200


@pytest.fixture
def adopted(host: Host) -> Host:
    """A session whose first turn went out before it had foredeck."""
    host.add(
        user("Run it."),
        assistant(calls("c0", "bash", command="make test")),
        result("c0", "bash", OUTPUT),
        assistant("Done."),
    )
    assert ask(host).text(2) == OUTPUT
    return host


def test_a_result_without_a_handle_is_called_by_its_call(adopted: Host) -> None:
    sent = bash(adopted, "c1", OUTPUT)
    assert last(sent) == 'Unchanged: the same as @3 (bash "make test") above.'


@pytest.mark.parametrize(
    ("tool", "told"), [("activate", "is above."), ("pin", "is above, and pinned.")]
)
def test_also_where_the_model_asks_for_it(adopted: Host, tool: str, told: str) -> None:
    assert last(context_tool(adopted, "t1", tool, "@3")) == f'@3 (bash "make test") {told}'


def test_lines_of_a_file_without_a_handle(host: Host) -> None:
    host.add(
        user("Read it."),
        assistant(calls("r0", "read", path="a.py")),
        result("r0", "read", OUTPUT),
        assistant("Done."),
    )
    ask(host)
    some = "\n".join(OUTPUT.split("\n")[4:14])
    part = f"{some}\n\n[16 more lines in file. Use offset=15 to continue.]"
    sent = use(host, "r1", "read", part, path="a.py", offset=5, limit=10)
    assert last(sent) == 'Unchanged: these lines are in @3 (read "a.py") above.'


# Not text


def test_bytes_that_are_no_text_are_not_read_out(host: Host) -> None:
    ask(host)
    told = last(use(host, "r1", "read", GARBLED, path="a.out"))
    assert told.startswith(f"@4 is not text: {len(GARBLED):,} characters")
    assert "\ufffd" not in told
    (stored,) = host.store.query("toolcall")
    assert host.store.blob(stored.fields["text_hash"]) == GARBLED.encode()


def test_text_with_a_few_odd_bytes_is_shown(host: Host) -> None:
    ask(host)
    text = "Gr\ufffd\ufffde aus M\ufffdnchen, sonst ist alles lesbar.\n" * 10
    assert last(use(host, "r1", "read", text, path="latin1.txt")).endswith(text)


def test_what_a_command_prints_is_shown_as_it_is(host: Host) -> None:
    ask(host)
    assert last(bash(host, "c1", GARBLED)).endswith(GARBLED)
