"""Where a text stood, of a session whose chat was put away by its host."""

from __future__ import annotations

from foredeck.accounting.trace import trace
from foredeck.model.records import call_id
from foredeck_bench.file_agent import FileAgent as Agent


def test_what_the_host_has_put_away_is_compacted_and_not_unknown(at_work: Agent) -> None:
    (at_work.cwd / "names.txt").write_text("calculate_everything\n")
    at_work.read("names.txt")
    at_work.answer()
    at_work.put_away(7)
    at_work.answer()
    at_work.read("names.txt")
    last = at_work.answer()
    opened = at_work.engine.opened
    assert opened is not None
    found = trace(opened.session.objects.store, "s", "calculate_everything", call_id("s", last))
    assert found.calls == last
    assert [(span.visibility.label, span.first, span.last) for span in found.spans] == [
        ("never seen", 1, 2),
        ("in view", 3, 3),
        ("compacted", 4, 4),
        ("in view", 5, 5),
    ]
    assert found.spans[2].places[0].what == "result of read names.txt"
