"""The block before the chat: when it is written, and that it stays as it is in between."""

from __future__ import annotations

import pytest

from context.conftest import NewHost
from context.driver import Host
from context.heads import Counting, Said
from context.messages import lines
from context.scenes import ask, finish, later, use
from context.sent import Sent, message_text
from foredeck.context.head import CHARS_PER_TOKEN, head_opening

COLD_S = 400


def head(sent: Sent) -> str:
    """The text of the head; empty where there is none."""
    first = message_text(sent.prompt[0])
    return first if first.startswith(head_opening()) else ""


@pytest.fixture
def notes() -> Said:
    return Said("notes", [f"notes/{n:03}.md" for n in range(3)])


@pytest.fixture
def host(new_host: NewHost, notes: Said) -> Host:
    host = new_host()
    host.sections = [notes]
    return host


def test_it_stands_before_the_chat_as_one_message_of_ours(host: Host) -> None:
    sent = ask(host)
    assert sent.prompt[0] == {
        "role": "user",
        "content": [
            {
                "text": head_opening() + "[foredeck] notes:\n" + "\n".join(host.sections[0].lines),
                "type": "text",
            }
        ],
        "timestamp": 0,
    }
    assert sent.prompt[1:] == sent.messages


def test_with_nothing_to_say_there_is_none_and_no_byte_of_it(host: Host, notes: Said) -> None:
    notes.lines.clear()
    sent = ask(host)
    assert sent.prompt == sent.messages
    assert sent.record.says == {}
    assert "head" not in sent.record.fields["state"]


def test_switched_off_its_sections_are_not_even_asked(new_host: NewHost) -> None:
    host, section = new_host(head={"tokens": 0}), Counting("notes")
    host.sections = [section]
    sent = ask(host)
    assert sent.prompt == sent.messages
    assert section.asked == 0


def test_a_pause_lets_it_be_written_again(host: Host, notes: Said) -> None:
    first = ask(host)
    finish(host)
    notes.lines.insert(0, "notes/new.md")
    host.wait(COLD_S)
    sent = ask(host)
    assert "notes/new.md" in head(sent)
    assert head(sent) != head(first)
    assert (sent.decision.kind, sent.decision.reason, sent.decision.changed_from) == (
        "rebase",
        "cold",
        0,
    )


def test_it_grows_at_free_rebases_while_the_session_can_pay_for_it(host: Host) -> None:
    host.sections = [Said("notes", [f"notes/{n:04}.md" for n in range(2000)])]
    sizes = [len(head(ask(host)))]
    for number in range(8):
        use(host, f"r{number}", "bash", lines(900, f"run {number}"), command=f"make {number}")
        sizes.append(len(head(later(host, seconds=COLD_S))))
        finish(host)
    assert sizes[0] <= 200 * CHARS_PER_TOKEN
    assert sizes == sorted(sizes)
    assert 1100 * CHARS_PER_TOKEN < sizes[-1] <= 1200 * CHARS_PER_TOKEN


def test_a_small_window_has_a_small_head(host: Host) -> None:
    host.sections = [Said("notes", [f"notes/{n:04}.md" for n in range(2000)])]
    host.set_window(8000)
    assert 0 < len(head(ask(host))) <= 160 * CHARS_PER_TOKEN


def test_the_layout_pools_has_none(new_host: NewHost, notes: Said) -> None:
    host = new_host(layout="pools")
    host.sections = [notes]
    assert not any(message_text(m).startswith(head_opening()) for m in ask(host).prompt)
