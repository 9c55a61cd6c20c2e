"""From a file version to the tool call that made it, and to the model call that asked for that."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from foredeck.model.calls import CallRecord
from foredeck.model.canonical import decode_text
from foredeck.model.documents import FileDocument
from foredeck.sources.snapshots import TOOL_CALL, is_captured
from foredeck.store.protocol import Head, Store, Token
from foredeck.timeline.branches import records_of


def text_of_version(store: Store, version: Head) -> str:
    """The text of a file's version; empty where it has none."""
    # A long text is a blob of its own; the whole document would be checked against all its hashes.
    digest = version.fields.get("text_hash")
    blob = store.blobs([digest]).get(digest) if digest else None
    if blob is not None:
        return decode_text(blob)
    document = store.get(version.id, FileDocument, version.token)
    return "" if document is None or document.content is None else document.content


def is_written_by_agent(version: Head) -> bool:
    """Whether a `write` or `edit` made a file's version, and not a command, a person or a
    program."""
    return (version.fields.get("provenance") or {}).get("generator") == "agent"


def tool_call_of(version: Head) -> str | None:
    """The id of the tool call that a file's version names; None where it names none."""
    named = (version.fields.get("provenance") or {}).get(TOOL_CALL)
    return named if isinstance(named, str) else None


def maker_of(version: Head, *, first: bool) -> str | None:
    """The id of the tool call that made a file's version, as far as it names it. `first`: it is the
    oldest one: what a command has only shown was there before."""
    is_made = is_written_by_agent(version) or is_captured(version.fields) or not first
    return tool_call_of(version) if is_made else None


def by_transaction(store: Store, tool_calls: Iterable[Head]) -> dict[Token, Head]:
    """Tool calls by the transactions that stored them: the first of each holds what it wrote.

    For versions that were stored before they named their tool call.
    """
    found: dict[Token, Head] = {}
    for head in tool_calls:
        # A later version only corrects its place in the chat.
        for version in store.history(head.id):
            found.setdefault(version.token, head)
    return found


class ModelCalls:
    """The model calls of a session, by the tool calls that their answers asked for."""

    def __init__(self, store: Store, session: str) -> None:
        self._store = store
        records = records_of(store, session)
        self._by_id = {record.id: record for record in records}
        self._by_answer = dict(self._answers(records))

    def behind(self, tool_call: Head) -> CallRecord | None:
        """The call whose answer asked for a tool call; None where it was not seen."""
        turn = self._store.head(str(tool_call.fields.get("turn_ref")))
        if turn is None:
            return None
        if (answered := turn.fields.get("answers")) in self._by_id:
            return self._by_id[answered]
        return self._by_answer.get(str(turn.fields.get("assistant")))

    def _answers(self, records: Iterable[CallRecord]) -> Mapping[str, CallRecord]:
        """The first message after a call's list is its answer."""
        found: dict[str, CallRecord] = {}
        for record in records:
            parent = self._by_id.get(record.parent or "")
            address = next(record.addresses, None)
            if parent is not None and address is not None and record.kept == parent.length:
                found.setdefault(address, parent)
        return found
