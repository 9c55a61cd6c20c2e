"""Session files are read as Pi itself shows them to the model: compared with Pi's own function."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from foredeck.context.messages.shape import Message, identifying_fields
from foredeck.context.state.stored_chat import render_chat
from foredeck.model.documents import SystemPromptDocument, ToolcallDocument
from foredeck.store.protocol import Token
from foredeck.store.store import open_sqlite
from foredeck_agents.histories.ingesting import ingest_files
from foredeck_agents.histories.lines import opened_lines
from foredeck_agents.histories.pi import load_transcript, read_pi
from foredeck_agents.histories.records import HistoryMessage, RecordedCall, Transcript
from foredeck_lab.replay.options import ReplayOptions
from foredeck_lab.replay.pi import plain_prompts
from foredeck_lab.replay.replayed_session import ReplayedSession
from processes import run_program
from replay.recordings import Recording, call, everything, text

Entry = dict[str, Any]
Shown = dict[str, list[tuple[str, Message]]]
SCRIPT = Path(__file__).with_name("projection.mjs")
RECORDED = sorted(Path(__file__).parents[1].glob("recordings/*.jsonl"))
"""Sessions of the real Pi."""


def tool(name: str) -> Entry:
    return {"name": name, "description": f"The tool {name}.", "parameters": {"type": "object"}}


def system(recording: Recording, **fields: Any) -> str:
    return recording.message("system", content="", **fields)


def edit(recording: Recording, target: str, content: Any = None) -> str:
    replacement = None if content is None else {"content": content}
    return recording.add("context_edit", targetId=target, replacement=replacement)


def of_today() -> Recording:
    """All that Pi 1.6 writes into a session file, on several branches."""
    recording = Recording(id="0199bbbb-0000-7000-8000-000000000016")
    system(
        recording,
        sections={"preamble": "You are an assistant.", "cwd": "/repo"},
        toolsAdded=[tool("read"), tool("bash"), tool("tool_search")],
    )
    recording.user("Look around.")
    recording.assistant(call("t1", "bash", command="ls"), stop="toolUse")
    listed = recording.result("t1", "bash", text("a.py\n" * 30))
    edit(recording, listed, "(taken out)")
    edit(recording, listed, [text("(taken out for good)")])
    recording.assistant(call("t2", "read", path="a.py"), call("t3", "bash"), stop="toolUse")
    recording.result("t2", "read", text("one\ntwo\n"))
    fork = recording.result("t3", "bash", text("output\n" * 20))
    recording.add("usage", kind="cache_warm", usage={"input": 0, "output": 0, "cacheRead": 9})
    edit(recording, listed)
    recording.assistant(text("On a branch that was left."))
    recording.branch(fork)
    recording.add("branch_summary", fromId="x", summary="What was tried.")
    recording.add("branch_summary", fromId="x", summary="")
    system(recording, toolsAdded=[tool("mcp__tickets__find")], toolsRemoved=[{"name": "bash"}])
    script = {"id": "t4/1", "name": "read", "status": "ok", "arguments": {"path": "a.py"}}
    recording.assistant(call("t4", "codemode", code="..."), stop="toolUse", thinkingLevel="high")
    nested = {"calls": [script], "complete": True}
    recording.result("t4", "codemode", text("Script completed"), nestedCalls=nested)
    edit(recording, recording.assistant(stop="error", errorMessage="prompt is too long"))
    note = recording.add("custom_message", customType="n", content="A note.", display=True)
    kept = recording.user("Go on.")
    edit(recording, note, "Another note.")
    system(recording, sections={"cwd": None, "skills": "None."})
    recording.assistant(text("I do."), diagnostics=[{"type": "anthropic_input_transformations"}])
    whole = {"role": "system", "content": "", "sections": {"preamble": "You are."}, "timestamp": 1}
    whole["toolsAdded"] = [tool("read")]
    first = recording.add(
        "compaction", summary="Looked.", firstKeptEntryId=kept, tokensBefore=9, systemMessage=whole
    )
    recording.user("And now?")
    recording.assistant(text("Now I edit."))
    system(recording, toolsAdded=[tool("edit")])
    edit(recording, recording.assistant(text("Half an ans"), stop="length"))
    recording.assistant(text("A whole answer."))
    recording.add(
        "compaction", summary="Edited.", firstKeptEntryId=first, tokensBefore=9, systemMessage=whole
    )
    edit(recording, kept, "Go on, they said.")
    recording.assistant(text("Something else."))
    own = f"{len(recording.entries) + 1:08x}"
    recording.add(
        "compaction", summary="All.", firstKeptEntryId=own, tokensBefore=9, systemMessage=whole
    )
    recording.user("Alone.")
    recording.assistant(text("Yes."))
    recording.user("The last.")
    return recording


def of_before() -> Recording:
    """What no Pi of today writes: messages without content, a role that was renamed."""
    recording = Recording(id="0199bbbb-0000-7000-8000-000000000002")
    recording.user("Hello.")
    recording.assistant(text("Hello."))
    recording.message("hookMessage", customType="n", content="A note.", display=True)
    recording.message("user", content=None)
    recording.assistant(text("What is it?"))
    return recording


def _old(recording: Recording) -> list[str]:
    header, *rest = recording.lines()
    return [json.dumps({**json.loads(header), "version": 2}), *rest]


MADE = {
    "today": of_today().lines(),
    "everything": everything().lines(),
    "version 2": _old(of_before()),
    "version 1": everything(with_ids=False).lines(),
    **{path.stem: path.read_text().strip().split("\n") for path in RECORDED},
}


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The session files that are compared, by name."""
    folder = tmp_path_factory.mktemp("sessions")
    made = {name: folder / f"{name}.jsonl" for name in MADE}
    for name, path in made.items():
        path.write_text("\n".join(MADE[name]) + "\n")
    return made


@pytest.fixture(scope="module")
def pis(files: dict[str, Path], checkout: Path) -> dict[str, Shown]:
    """By file, what Pi shows: by number of the entry that answers, and at the end."""
    node = checkout / "node_modules" / ".bin" / "node"
    pi = checkout / "node_modules/@earendil-works/pi-coding-agent/dist/index.js"
    if not pi.exists():
        pytest.skip("Pi is not installed: run scripts/setup")
    ran = run_program(node, SCRIPT, pi, *files.values(), check=True)
    return {
        name: json.loads(line)
        for name, line in zip(files, ran.stdout.strip().split("\n"), strict=True)
    }


def entries_of(path: Path) -> list[Entry]:
    lines = (json.loads(line) for line in path.read_text().split("\n") if line)
    return [entry for entry in lines if entry["type"] != "session"]


def branches(path: Path, folder: Path) -> Iterator[tuple[Path, list[int]]]:
    """For each branch a file that ends with it, and the numbers of its entries that answer."""
    entries = entries_of(path)
    parents = {entry.get("parentId") for entry in entries}
    header = path.read_text().split("\n")[0]
    numbers = {entry.get("id"): number for number, entry in enumerate(entries)}
    for last, entry in enumerate(entries):
        if "id" in entry and entry["id"] in parents:
            continue
        chain, at = [], entry.get("id") if "id" in entry else None
        while at is not None:
            chain.append(numbers[at])
            at = entries[numbers[at]]["parentId"]
        on_branch = sorted(chain) or list(range(len(entries)))
        if not chain and last < len(entries) - 1:
            continue
        part = folder / f"{last}.jsonl"
        part.write_text("\n".join([header, *map(json.dumps, entries[: last + 1])]) + "\n")
        answers = [
            n for n in on_branch if (entries[n].get("message") or {}).get("role") == "assistant"
        ]
        yield part, answers


def as_shown(transcript: Transcript, call: RecordedCall) -> list[Message]:
    """The list that a call was shown by the transcript, system messages in their places."""
    compactions = [c for c in transcript.compactions if c.seen <= call.seen]
    (prompt,) = plain_prompts(_only(transcript, call), transcript.compactions)
    rest = iter(prompt)
    shown = [next(rest)] if compactions else []
    first = compactions[-1].kept_from if compactions else 0
    told = transcript.system_of(call)
    changes = [c for c in transcript.system if any(c.message is message for message in told)]
    if changes and changes[0].is_whole:
        shown.insert(0, changes.pop(0).message)
    for index, message in enumerate(transcript.edited(call.seen)[first:], first):
        shown += [c.message for c in changes if c.seen == index]
        shown += [next(rest)] if message is not None else []
    return [*shown, *(c.message for c in changes if c.seen == call.seen)]


def _only(transcript: Transcript, call: RecordedCall) -> Transcript:
    edits = transcript.edits
    return Transcript(transcript.path, "", "", transcript.messages, [call], edits=edits)


def plainly(message: Message) -> Message:
    """What decides what the model sees of a message."""
    if message.get("role") == "compactionSummary":
        return {"role": message["role"], "summary": message["summary"]}
    return identifying_fields(message)


@pytest.mark.parametrize("name", MADE)
def test_every_call_was_shown_what_pi_says(
    name: str, files: dict[str, Path], pis: dict[str, Shown], tmp_path: Path
) -> None:
    """On every branch, message by message."""
    compared = 0
    for part, answers in branches(files[name], tmp_path):
        transcript = load_transcript(part)
        # An answer that nothing came before is no call.
        for made, number in zip(transcript.calls, answers[-len(transcript.calls) :], strict=True):
            expected = [plainly(message) for _, message in pis[name][str(number)]]
            assert [plainly(m) for m in as_shown(transcript, made)] == expected
            compared += 1
    assert compared >= len(pis[name]) - 2


@pytest.mark.parametrize("name", [name for name in MADE if name != "version 1"])
def test_messages_are_read_in_as_the_first_call_that_saw_them(
    name: str, files: dict[str, Path], pis: dict[str, Shown]
) -> None:
    """What an edit took out before any call saw it is not read in."""
    edited = {entry.get("targetId") for entry in entries_of(files[name])}
    with opened_lines(files[name]) as lines:
        records = {r.entry: r.message for r in read_pi(lines) if isinstance(r, HistoryMessage)}
    first: dict[str, Message] = {}
    for number in sorted(pis[name], key=lambda number: (number == "leaf", number.rjust(9))):
        for id, message in pis[name][number]:
            if message["role"] != "system":
                first.setdefault(id, message)
    for id, message in first.items():
        assert plainly(records[id]) == plainly(message)
    assert not edited & {*records} - {*first}


def test_what_is_read_in_of_a_session_of_today(files: dict[str, Path], tmp_path: Path) -> None:
    with closing(open_sqlite(tmp_path / "foredeck.db")) as store:
        report = ingest_files(store, [files["today"]])
        assert (report.files, report.tool_calls) == ({"pi": 1}, 4)
        assert report.other == {"system": 4, "usage": 1, "context_edit": 7, "branch_summary": 1}
        chat = render_chat(store, of_today().id, 20)
        listed = [store.get("t1", ToolcallDocument)]
        head = store.history(f"system_prompt:{of_today().id}")
        documents = [store.get(h.id, SystemPromptDocument, Token(h.token)) for h in head]
        files_stored = [h.fields["source"]["path"] for h in store.query("file")]
    assert [call.content for call in listed if call] == ["(taken out for good)"]
    assert "Half an ans" not in chat
    assert files_stored == ["/repo/a.py"]
    tools = [[tool["name"] for tool in document.tools] for document in documents if document]
    first, loaded = ["read", "bash", "tool_search"], ["read", "tool_search", "mcp__tickets__find"]
    # With another text only from the fourth on: a section is removed, a compaction says all anew.
    assert tools == [first, loaded, loaded, ["read"], ["read", "edit"], ["read"]]
    assert "You are an assistant." in str(documents[0] and documents[0].content)


def test_a_replay_shows_what_the_host_has_edited(files: dict[str, Path], tmp_path: Path) -> None:
    """As the host had it at each call; the tools are those that it had then."""
    transcript = load_transcript(files["today"])
    options = ReplayOptions(policy="keep-all")
    with closing(ReplayedSession(tmp_path, transcript, options)) as session:
        prompts = [json.dumps(session.call(call)[0]) for call in transcript.calls]
        frame = session.engine.opened.session.frame
        assert [tool["name"] for tool in frame.tools][:2] == ["read", "activate"]
    assert all("a.py\\na.py" not in prompt for prompt in prompts)
    assert "(taken out for good)" in prompts[1]
    assert "(taken out for good)" in prompts[2]
    assert "Half an ans" not in prompts[-1]
    assert '"role": "system"' not in prompts[-1]
    assert "Go on, they said." in prompts[-1]
    assert "Another note." in prompts[-1]
