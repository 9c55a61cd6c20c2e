"""Tools that are not Pi's four, and extensions that own what we look at."""

from __future__ import annotations

import re
from typing import Any

import pytest

from foredeck.accounting.account import AccountingMethod
from foredeck.accounting.bookkeeping import account_of
from foredeck.accounting.stored import StoredCalls
from foredeck.model.call_values import Ack
from foredeck.model.documents import ToolcallDocument
from foredeck_bench.twin.script import call
from foredeck_lab.cost_command import cost_text
from harness import SMALL, TALK, TEXT, Asked, Pi, both_versions, questions
from observed import (
    answered,
    assert_stable,
    calls_of,
    handle,
    notified,
    results,
    session_of,
    stored,
)

OWNS_COMPACTION = """
export default function (pi) {
  let asked = 0;
  pi.on("session_before_compact", ({ preparation: { firstKeptEntryId, tokensBefore } }) => {
    asked += 1;
    if (asked === 1) return { cancel: true };
    const summary = "A summary of another extension.";
    return { compaction: { summary, firstKeptEntryId, tokensBefore } };
  });
}
"""

REPLACES_BASH = """
export default function (pi) {
  pi.registerTool({
    name: "bash",
    label: "bash",
    description: "runs elsewhere",
    parameters: { type: "object", properties: { command: { type: "string" } } },
    async execute(_id, { command }) {
      return { content: [{ type: "text", text: `ran elsewhere: ${command}\\n`.repeat(60) }] };
    },
  });
}
"""

REWRITES_REQUESTS = """
export default function (pi) {
  const metadata = { user_id: "other" };
  pi.on("before_provider_request", ({ payload }) => ({ ...payload, metadata }));
}
"""

NUDGES = """
export default function (pi) {
  let asked = 0;
  pi.on("before_provider_request", ({ payload: { messages, ...rest } }) => {
    asked += 1;
    const text = `Mind the budget: ${10 - asked} calls are left.`;
    const nudge = { role: "user", content: [{ type: "text", text }] };
    const newest = messages.findLastIndex(({ role }) => role === "user");
    return { ...rest, messages: messages.toSpliced(newest, 0, nudge) };
  });
}
"""

REDACTS_IN_PLACE = """
export default function (pi) {
  let asked = 0;
  pi.on("before_provider_request", ({ payload }) => {
    asked += 1;
    if (asked === 2) payload.messages[0].content[0].text = "(redacted)";
  });
}
"""


def placed(other: str, *, first: bool) -> dict[str, Any]:
    """Loaded before foredeck or after it, as arguments of a start."""
    return {"before" if first else "extensions": [other]}


def contents(pi: Pi, tool: str) -> list[str | None]:
    """What the store has of the calls of one tool."""
    with stored(pi) as store:
        found = [store.get(head.id, ToolcallDocument) for head in store.query("toolcall")]
        return [document.content for document in found if document and document.tool == tool]


def test_another_extension_owns_compaction(pi: Pi) -> None:
    """It cancels the user's first compaction and writes the second."""
    model = pi.serve([f"Answer {n}. {TALK}" for n in range(3)] + ["on", "and on"], settings=SMALL)
    rpc = pi.rpc(*questions(3), foredeck=True, before=[OWNS_COMPACTION])
    with pytest.raises(Exception, match=r"[Cc]ancel"):
        rpc.compact()
    rpc.prompt("Go on.")
    assert rpc.compact()["summary"] == "A summary of another extension."
    rpc.prompt("And on.")
    sent = answered(model)
    assert_stable(sent[:4])
    assert "A summary of another extension." in sent[4].request.text
    assert "Question 0" not in sent[4].request.text
    cancelled, written = notified(rpc)
    assert cancelled.startswith("A compaction was cancelled by another extension or by you")
    assert written.startswith("Another extension wrote the summary of a compaction")
    with stored(pi) as store:
        kept = [head.fields for head in store.query("compaction")]
        assert [fields["written_by"] for fields in kept] == ["extension"]
        (at,) = [m for m in store.query("member") if m.fields["object_type"] == "compaction"]
        assert f"The summary above covers @{at.fields['ordinal']}:" in sent[4].request.text
        assert len(calls_of(store)) == len(sent)


def test_a_bash_of_another_extension_is_kept_as_it_gave_it(pi: Pi) -> None:
    model = pi.serve([call("bash", command="ls"), "done", call("bash", command="ls"), "end"])
    rpc = pi.rpc("work", "more", foredeck=True, extensions=[REPLACES_BASH])
    (told,) = notified(rpc)
    assert told.startswith("Another extension replaces Pi's own bash")
    ran = "ran elsewhere: ls\n" * 60
    first, again = results(answered(model)[-1])
    assert first.endswith(ran)
    assert again.startswith("Unchanged: ")
    assert contents(pi, "bash") == [ran, ran]
    assert_stable(answered(model))


@pytest.mark.parametrize("first", [True, False], ids=["before", "after"])
def test_a_request_that_another_extension_rewrites_goes_out_as_it_left_it(
    pi: Pi, first: bool
) -> None:
    (pi.repo / "a.txt").write_text(TEXT)
    model = pi.serve([call("read", path="a.txt"), call("read", path="a.txt"), "done"])
    assert pi.print("work", foredeck=True, **placed(REWRITES_REQUESTS, first=first)).code == 0
    assert [r.request.body["metadata"] for r in answered(model)] == [{"user_id": "other"}] * 3
    assert results(answered(model)[-1])[1].startswith("Unchanged: ")
    assert_stable(answered(model))


REWRITTEN = "Another extension changes requests on their way to the model"


@pytest.mark.parametrize(
    ("source", "first"), [(NUDGES, True), (REDACTS_IN_PLACE, True), (REDACTS_IN_PLACE, False)]
)
def test_who_rewrites_what_was_sent_before_is_told_of_once(
    pi: Pi, source: str, first: bool
) -> None:
    """And the hits that this loses are put down to it."""
    pi.serve([f"Answer {n}." for n in range(4)])
    prompts = [f"Question {n}: {TALK}" for n in range(4)]
    run = pi.print(*prompts, foredeck=True, **placed(source, first=first))
    assert run.code == 0
    assert run.stderr.count(REWRITTEN) == 1
    assert f"{REWRITTEN} (messages from number 1 on)" in run.stderr
    with stored(pi) as store:
        acks = [ack for record in calls_of(store) for ack in record.acks]
        lines = account_of(list(StoredCalls(store, session_of(store))), AccountingMethod()).lines
    assert Ack(2, "rewritten", "messages from number 1 on") in acks
    # Of the last call only the next one could tell.
    assert {cause for line in lines[:-1] for cause in line.lost} == {"another extension"}


def test_who_puts_another_request_in_the_stead_of_ours_shows_in_what_the_provider_counts(
    pi: Pi,
) -> None:
    """Pi shows nobody what the extension that it asks last has made of a request."""
    pi.serve([f"Answer {n}." for n in range(4)])
    prompts = [f"Question {n}: {TALK}" for n in range(4)]
    run = pi.print(*prompts, foredeck=True, extensions=[NUDGES])
    assert (run.code, run.stderr) == (0, "")
    with stored(pi) as store:
        account = account_of(list(StoredCalls(store, session_of(store))), AccountingMethod())
    assert {cause for line in account.lines for cause in line.lost} == {"unexplained"}
    told = cost_text("s", account)
    assert "What is unexplained is a defect of foredeck, the provider's doing, or that" in told
    assert "read from the cache: predicted" in told


def test_searching_tools_list_and_leave_content_alone(pi: Pi) -> None:
    """What `grep`, `find` and `ls` have seen of a file never takes the place of its content."""
    (pi.repo / "a.txt").write_text(TEXT)
    model = pi.serve(
        [
            call("read", path="a.txt"),
            [call("ls", path="."), call("find", pattern="*.txt"), call("grep", pattern="line 5")],
            "done",
            lambda _: call("activate", id="a.txt"),
            "end",
        ]
    )
    tools = ["--tools", "read,bash,edit,write,grep,find,ls,activate,deactivate,pin,unpin"]
    pi.rpc("search", "more", foredeck=True, arguments=tools)
    assert_stable(answered(model))
    assert TEXT in results(answered(model)[-1])[0]
    assert results(answered(model)[-1])[-1].endswith("is above.")
    assert [len(contents(pi, tool)) for tool in ("ls", "find", "grep")] == [1, 1, 1]
    with stored(pi) as store:
        (file,) = [h for h in store.query("file") if h.fields["source"]["path"].endswith("a.txt")]
        assert len(store.history(file.id)) == 1


def test_nested_calls_of_code_mode_change_no_script(pi: Pi) -> None:
    """A script gets the text of a tool as it is, also where the model would see a line of ours.
    What it edits is the agent's own doing."""
    (pi.repo / "a.txt").write_text(TEXT)
    script = (
        "const a = await tools.read({ path: 'a.txt' }); "
        "await tools.edit({ path: 'a.txt', edits: [{ oldText: 'line 7:', newText: 'line 7!' }] }); "
        "return a.length + ' ' + a.slice(0, 7);"
    )
    model = pi.serve(
        [
            call("read", path="a.txt"),
            call("codemode", code=script),
            "done",
            call("bash", command="seq 300"),
            "end",
        ]
    )
    pi.rpc("run it", "more", foredeck=True, arguments=["--tools", "+codemode"])
    assert f"{len(TEXT)} line 0:" in results(answered(model)[-1])[1]
    assert_stable(answered(model))
    assert "Script completed" in str(contents(pi, "codemode")[0])
    assert "changed on disk" not in answered(model)[-1].request.text
    with stored(pi) as store:
        (file,) = store.query("file")
        origins = [head.fields["provenance"]["origin"] for head in store.history(file.id)]
    assert origins == ["disk", "edit"]


@both_versions
def test_nested_calls_of_code_mode_and_their_files_can_be_had(pi: Pi, asked: Asked) -> None:
    """No message list has them; the model finds them by their files, the user under their call."""
    (pi.repo / "a.txt").write_text(TEXT)
    script = (
        "const a = await tools.read({ path: 'a.txt' }); "
        "await tools.write({ path: 'b.txt', content: a }); return 'copied';"
    )
    model = pi.serve([call("codemode", code=script), [call("activate", id="a.txt")], "done"])
    rpc = pi.rpc("run it", foredeck=True, arguments=["--tools", "+codemode"])
    rpc.command("/foredeck")
    at = handle(pi, "/a.txt")
    assert results(model.requests[-1])[1] == f"{at}\n{TEXT}"
    listed = notified(rpc)[-1]
    assert re.search(r" codemode .*, which ran @\d+ read a\.txt, @\d+ write b\.txt", listed)
    with stored(pi) as store:
        (session,) = store.query("session")
        (parent,) = [h for h in store.query("toolcall") if h.fields["tool"] == "codemode"]
        files = store.query("file")
        nested = [h for h in store.query("toolcall") if h.fields["parent_ref"] == parent.id]
    assert [(h.fields["tool"], h.fields["position"]) for h in nested] == [("read", 0), ("write", 1)]
    assert {h.fields["turn_ref"] for h in nested} == {parent.fields["turn_ref"]}
    target = pi.workspace.root / "session.jsonl"
    asked("export", session.fields["session_id"], str(target))
    exported = target.read_text()
    assert all(f'"id":"{head.id}"' in exported for head in nested)
    (written,) = [h for h in files if h.fields["source"]["path"] == str(pi.repo / "b.txt")]
    assert exported.count(f'"id":"{written.id}"') == 1
