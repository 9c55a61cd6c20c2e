"""Sessions over time: resume, fork, tree, compaction, with foredeck and without."""

from __future__ import annotations

import json

from foredeck.context.state.stored_chat import chat_fields
from foredeck.model.messages import load_message
from foredeck.store.store import Store
from foredeck_bench.twin.script import ModelRequest, Step, ToolCall, call
from harness import TEXT, Asked, Pi, both_versions
from observed import (
    answered,
    assert_recorded,
    assert_stable,
    calls_of,
    handle,
    messages,
    results,
    session_of,
    stored,
    texts_of_sent,
    texts_of_shown,
)

WORK: list[Step] = [
    call("read", path="a.txt"),
    [call("read", path="a.txt"), call("bash", command="seq 300")],
    call("edit", path="a.txt", edits=[{"oldText": "line 7:", "newText": "line seven:"}]),
    "worked",
]


def test_continue_in_a_new_process_sends_the_same_bytes(pi: Pi) -> None:
    (pi.repo / "a.txt").write_text(TEXT)
    model = pi.serve([*WORK, call("read", path="a.txt"), "again", "more"])
    assert pi.print("work", foredeck=True).code == 0
    with stored(pi) as store:
        assert "worked" in said_last(store), "before anybody asks again"
    assert pi.print("go on", foredeck=True, arguments=["--continue"]).code == 0
    assert pi.print("and on", foredeck=True, arguments=["--continue"]).code == 0
    assert_stable(answered(model))
    assert results(model.requests[-1])[1].startswith("Unchanged: ")
    with stored(pi) as store:
        assert_recorded(store, session_of(store), answered(model))
        kinds = {record.decision.kind for record in calls_of(store)}
        answers = [turn.fields["assistant"] for turn in store.query("turn")]
        assert "more" in said_last(store)
    assert kinds == {"append"}
    assert len(answers) == len(set(answers)) == 7


@both_versions
def test_a_fork_inherits_handles_and_bytes(pi: Pi, asked: Asked) -> None:
    (pi.repo / "a.txt").write_text(TEXT)
    model = pi.serve(
        [
            *WORK,
            "first answer",
            "other answer",
            lambda _: call("activate", id=f"{handle_in(pi, parent)} v1"),
            lambda _: call("activate", id=f"chat:{child} turns 1"),
            call("bash", command="seq 400"),
            "end",
        ]
    )
    rpc = pi.rpc("work", "second question", foredeck=True)
    parent = rpc.state()["sessionId"]
    fact = ("memory", "add", "The port is 8080", "--category", "fact")
    asked(*fact, "--session", parent, "--project", str(pi.repo))
    rpc.fork(1)
    child = rpc.state()["sessionId"]
    assert child != parent
    rpc.prompt("another second question")
    rpc.prompt("look back")
    assert "--- user\n work\n--- toolcall @" in results(answered(model)[-1])[-2]
    kept = asked("memory", "list", "--session", child, "--project", str(pi.repo))
    assert "The port is 8080" in kept
    before, after = answered(model)[3], answered(model)[5]
    shared = messages(before)
    assert messages(after)[: len(shared)] == shared
    assert_stable(answered(model)[5:])
    with stored(pi) as store:
        assert_recorded(store, parent, answered(model)[:5])
        assert_recorded(store, child, answered(model)[5:])
        chat = chat_fields(store, child, turns=9)
        said = [turn["user"]["content"][0]["text"] for turn in chat["turns"] if turn["user"]]
        assert said == ["work", "another second question", "look back"]
        assert {turn["id"].split(":")[1] for turn in chat["turns"]} == {parent, child}
        assert store.head(f"session:{child}").fields["parent_session"] == parent
        own = [m for m in store.query("member") if m.fields["session"] == child]
        inherited = {m.fields["object"]: m.fields["ordinal"] for m in own}
        for m in store.query("member"):
            if m.fields["session"] == parent and m.fields["object_type"] in ("file", "toolcall"):
                assert inherited.get(m.fields["object"]) == m.fields["ordinal"]


def handle_in(pi: Pi, session: str) -> str:
    """The handle that a session knows `a.txt` by."""
    with stored(pi) as store:
        (found,) = [
            m for m in store.query("member", {"session": session}) if "a.txt" in m.fields["label"]
        ]
    return f"@{found.fields['ordinal']}"


GOTO = """
export default function (pi) {
  pi.registerCommand("goto", {
    description: "navigate to an entry",
    handler: async (id, ctx) => { await ctx.navigateTree(id.trim(), { summarize: false }); },
  });
}
"""


@both_versions
def test_the_tree_brings_back_each_branch_as_it_was(pi: Pi, asked: Asked) -> None:
    (pi.repo / "a.txt").write_text(TEXT)
    model = pi.serve(
        [
            *WORK,
            [call("bash", command="seq 500"), call("pin", id="a.txt")],
            "left",
            call("edit", path="a.txt", edits=[{"oldText": "line 8:", "newText": "line eight:"}]),
            "right",
            "left again",
        ]
    )
    rpc = pi.rpc("work", "go left", foredeck=True, extensions=[GOTO])
    left = rpc.entries()[-1]["id"]
    rpc.command(f"/goto {answer_of(rpc.entries(), 'worked')}")
    rpc.prompt("go right")
    assert "go left" not in model.requests[-1].request.text
    rpc.command(f"/goto {left}")
    rpc.prompt("left once more")
    sent = answered(model)
    trunk, branched, returned = messages(sent[3]), messages(sent[6]), messages(sent[8])
    assert branched[: len(trunk)] == trunk
    assert returned[: len(messages(sent[5]))] == messages(sent[5])
    with stored(pi) as store:
        assert_recorded(store, session_of(store), sent)
        records = calls_of(store)
    assert [record.decision.kind for record in records] == ["append"] * 9
    # Up to the answer "worked" both branches are one; the third goes on where the first ended.
    assert [records[n].shared for n in (6, 8)] == [9, 13]
    assert [record.stats.pinned for record in records] == [0, 0, 0, 0, 0, 1, 0, 0, 1]
    session = records[0].session
    listed = json.loads(asked("show", session, "--branches", "--json"))["branches"]
    assert [(b["number"], b["calls"], b["asked"], b["current"]) for b in listed] == [
        (1, [1, 2, 3, 4, 5, 6, 9], "work", True),
        (2, [7, 8], "go right", False),
    ]
    assert "1-6, 9" in asked("show", session, "--branches")
    shown = json.loads(asked("show", session, "--call", "8", "--json"))
    assert texts_of_shown(shown["messages"]) == texts_of_sent(messages(sent[7]))
    assert "call 8 of 9, branch 2" in asked("show", session, "--call", "8")
    file = ("history", str(pi.repo / "a.txt"), "--session", session)
    assert [v["branch"] for v in json.loads(asked(*file, "--json"))["versions"]] == [1, 1, 2]
    assert "branch" in asked(*file)


def answer_of(entries: list[dict[str, object]], text: str) -> str:
    """Id of the assistant's entry with that text."""
    found = [e for e in entries if text in str(e.get("message")) and "assistant" in str(e)]
    return str(found[-1]["id"])


@both_versions
def test_after_compaction_everything_can_be_activated_and_another_process_goes_on(pi: Pi) -> None:
    (pi.repo / "a.txt").write_text(TEXT)

    def bring_back(request: ModelRequest) -> list[ToolCall]:
        assert "Continue the work." in request.text
        with stored(pi) as store:
            ran = next(
                m.fields["ordinal"]
                for m in store.query("member")
                if m.fields["label"] == store.query("toolcall", {"tool": "bash"})[0].id
            )
        return [
            call("activate", id=f"{handle(pi, '/a.txt')} v1"),
            call("activate", id="a.txt"),
            call("activate", id=f"@{ran}"),
        ]

    long = "x" * 90_000
    model = pi.serve([*WORK, long, "third", bring_back, "found", "more"])
    rpc = pi.rpc("work", "say much", "third question", foredeck=True)
    assert "## Goal" in rpc.compact()["summary"]
    rpc.prompt("find it again")
    old, new, ran = results(answered(model)[-1])[-3:]
    at = handle(pi, "/a.txt")
    assert old.startswith(f"{at} v1")
    assert old.split("\n", 1)[1] == TEXT
    assert new.startswith(f"{at} v2")
    assert "\n+line seven: the quick brown fox" in new
    assert "\n299\n300\n" in ran
    assert rpc.shutdown() == 0
    assert pi.print("go on", foredeck=True, arguments=["--continue"]).code == 0
    assert_stable(answered(model)[6:])
    with stored(pi) as store:
        decisions = [record.decision for record in calls_of(store)]
    assert len(decisions) == len(answered(model))
    assert "append" in {d.kind for d in decisions}


def test_a_session_goes_on_without_foredeck_and_with_it_again(pi: Pi) -> None:
    (pi.repo / "a.txt").write_text(TEXT)
    model = pi.serve(
        [*WORK, call("bash", command="seq 200"), "plain", call("bash", command="seq 400"), "end"]
    )
    assert pi.print("work", foredeck=True).code == 0
    assert pi.print("plainly", foredeck=False, arguments=["--continue"]).code == 0
    assert pi.print("managed", foredeck=True, arguments=["--continue"]).code == 0
    plain, managed = answered(model)[5], answered(model)[6]
    assert "@" not in "".join(results(plain))
    shared = messages(plain)
    assert messages(managed)[: len(shared)] == shared or results(managed)[0].startswith("@")
    assert_stable(answered(model)[6:])


def test_without_a_session_file_nothing_is_lost(pi: Pi) -> None:
    (pi.repo / "a.txt").write_text(TEXT)
    model = pi.serve([*WORK, "more"])
    ended = pi.print("work", "go on", foredeck=True, arguments=["--no-session"])
    assert (ended.code, ended.stderr) == (0, "")
    assert pi.workspace.session_files() == []
    with stored(pi) as store:
        session = session_of(store)
        assert_recorded(store, session, answered(model))
        assert store.head(f"session:{session}").fields["host_file"] is None


def said_last(store: Store) -> str:
    """What the newest turn of the only session says, as JSON."""
    turns = sorted(store.query("turn"), key=lambda head: int(head.id.rsplit(":", 1)[1]))
    return json.dumps(load_message(turns[-1].fields["assistant"], store.blob))
