"""Entries that another extension replaces or hides with `context_edit`."""

from __future__ import annotations

from foredeck.lookup.sessions import branches_of
from foredeck.model.documents import ToolcallDocument
from foredeck_bench.twin.script import call
from harness import TEXT, Pi
from observed import (
    answered,
    assert_recorded,
    assert_stable,
    messages,
    notified,
    results,
    session_of,
    stored,
)

EDITS = """
const replacement = { content: [{ type: "text", text: "(taken out by another extension)" }] };
export default function (pi) {
  let turns = 0;
  pi.on("turn_end", ({ toolResultEntryIds, messageEntryId }) => {
    turns += 1;
    const [result] = toolResultEntryIds;
    if (turns === 1) return { entries: [{ type: "context_edit", targetId: result, replacement }] };
    if (turns === 4) {
      return { entries: [
        { type: "context_edit", targetId: messageEntryId, replacement: null },
      ] };
    }
    return undefined;
  });
}
"""


def test_entries_replaced_and_hidden_by_another_extension(pi: Pi) -> None:
    """The first result is replaced, the answer of the second prompt hidden."""
    (pi.repo / "a.txt").write_text(TEXT)
    model = pi.serve(
        [
            call("bash", command="seq 400"),
            call("read", path="a.txt"),
            "worked",
            "an answer that is hidden",
            "third",
            "fourth",
        ]
    )
    rpc = pi.rpc("work", "second", "third", "fourth", foredeck=True, extensions=[EDITS])
    assert notified(rpc) == []
    sent = answered(model)
    assert results(sent[1])[0].endswith("(taken out by another extension)")
    assert "an answer that is hidden" not in sent[4].request.text
    assert_stable(sent[1:4])
    assert_stable(sent[4:])
    shared = messages(sent[3])
    assert messages(sent[4])[: len(shared) - 1] == shared[:-1]
    with stored(pi) as store:
        assert_recorded(store, session_of(store), sent)
        assert len(branches_of(store, session_of(store)).all) == 1
        tools = [store.get(head.id, ToolcallDocument) for head in store.query("toolcall")]
        contents = {tool.content for tool in tools if tool}
    assert "".join(f"{n}\n" for n in range(1, 401)) in contents
