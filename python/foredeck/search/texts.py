"""Searched texts of stored documents, whatever was folded."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import Any

from foredeck.errors import ForedeckError, Missing
from foredeck.model.documents import ToolcallDocument, chat_id
from foredeck.model.figures import shortened
from foredeck.model.identity import decode_text, hash_text
from foredeck.model.messages import WORDS_LEFT, load_message, load_with_words, marked, unpack
from foredeck.model.own_tools import OWN_TOOLS
from foredeck.model.records import ARCHIVED, TurnDocument, messages_of_turn, turn_id
from foredeck.model.sources import history_source
from foredeck.model.wrappings import asked, is_aside, topic
from foredeck.search.passages import passage
from foredeck.search.secrets import mask_secrets
from foredeck.sources.snapshots import version_ms
from foredeck.store.protocol import Head
from foredeck.store.references import in_message
from foredeck.store.sessions import stored_messages
from foredeck.store.store import Store

SEARCHED = frozenset(
    {"turn", "toolcall", "file", "compaction", "task", "observation", "reflection", "memory"}
)
"""Types with searched texts."""

VERSIONED = frozenset({"file", "task"})
"""One hit, by the best version."""

_PLAIN_KEY = re.compile(r"[\w -]+")
_PATH_ARGUMENTS = ("path", "file_path", "filePath", "notebook_path")

TITLE_CHARS = 80
_PROMPT_CHARS = 1200
_TITLED_BY = (3, 30)
"""Turns examined for a title."""


@dataclass(frozen=True, slots=True)
class SearchedText:
    """One text of a version.

    `part` tells the messages of a turn apart; `said`: what was asked for; `output`: what came out;
    `fields`: parts of `said` by field (`args.command`); `is_archived`: only words are left.
    """

    document: str
    token: str
    part: str
    digest: str
    type: str
    role: str
    object: str
    time_ms: int
    session: str | None = None
    message: str | None = None
    turn: int | None = None
    status: str | None = None
    path: str | None = None
    task: str | None = None
    said: str = ""
    output: str = ""
    fields: tuple[tuple[str, str], ...] = ()
    is_archived: bool = False

    @property
    def pieces(self) -> list[tuple[str, str]]:
        parts = self.fields or (("", self.said),)
        own = [text for field, text in parts if not field]
        return [("", "\n".join([*own, self.output])), *(one for one in parts if one[0])]


def texts_of(head: Head, source: Fetched) -> list[SearchedText]:
    """The texts of a version; raises `Missing` without a blob."""
    match head.type:
        case "turn":
            return list(_of_turn(head, source))
        case "toolcall" if head.fields.get("tool") in OWN_TOOLS:
            # What foredeck's own tools are asked and answer is found where it comes from. Else the
            # best hit of a search would soon be the search before it.
            return []
        case "toolcall":
            return [_of_toolcall(head, source)]
        case "file" if head.fields.get("text_hash"):
            return [_of_file(head, source)]
        case "compaction":
            return [_of_compaction(head, source)]
        case "task":
            return [_of_task(head, source)]
        case "observation" | "reflection" if head.fields.get("text_hash"):
            return [_of_observation(head, source)]
        case "memory" if head.fields["state"] == "kept":
            return [_of_memory(head)]
    return []


class Fetched:
    """Blobs and contents behind some versions' texts."""

    # Asked for together: a store is asked twice for a hundred versions, not once for each.

    def __init__(self, store: Store, heads: Iterable[Head]) -> None:
        self._store = store
        messages: set[str] = set()
        digests: set[str] = set()
        heads = list(heads)
        self._turns = self._turns_of(heads)
        messages.update(str(turn.view(TurnDocument).assistant) for turn in self._turns.values())
        for head in heads:
            fields = head.fields
            if head.type == "turn":
                messages.update(messages_of_turn(fields))
            elif fields.get("text_hash"):
                digests.add(fields["text_hash"])
            if head.type == "toolcall":
                digests.update(marked([fields.get("args"), fields.get("details")]))
        self._blobs = stored_messages(store, messages | digests)
        inner = set[str]().union(*(in_message(self._blobs.get(address)) for address in messages))
        self._blobs |= store.blobs(inner - self._blobs.keys())

    def _turns_of(self, heads: Iterable[Head]) -> dict[str, Head]:
        # One that came later is not looked at: what is indexed must not depend on when it is.
        calls = [head for head in heads if head.fields.get("turn_ref")]
        newest = self._store.heads({str(call.view(ToolcallDocument).turn_ref) for call in calls})
        by_call = {}
        for call in calls:
            turn = newest.get(str(call.view(ToolcallDocument).turn_ref))
            if turn is not None and turn.token != call.token:
                turn = self._store.head(turn.id, call.token)
            if turn is not None and turn.token == call.token and turn.fields.get("assistant"):
                by_call[call.id] = turn
        return by_call

    def asked_ms(self, head: Head) -> int:
        """When a tool call was made, or its result came. Raises `Missing`."""
        # A history that is read in brings calls of long ago: when it was stored says nothing.
        turn = self._turns.get(head.id)
        if turn is None or turn.token != head.token:
            return version_ms(head)
        message = load_message(str(turn.view(TurnDocument).assistant), self.blob)
        return time_of(message, version_ms(head))

    def blob(self, digest: str) -> bytes:
        """Raises `Missing`."""
        if digest not in self._blobs:
            raise Missing(f"no blob {digest} in this store")
        return self._blobs[digest]

    def content(self, head: Head) -> str:
        """A version's content, or "". Raises `Missing`."""
        digest = head.fields.get("text_hash")
        if digest is None:
            return ""
        if digest in self._blobs:
            return decode_text(self._blobs[digest])
        # Short contents are kept within the version.
        document = self._store.document(head)
        return "" if document is None else document.content or ""


def time_of(message: Mapping[str, Any], stored_ms: int) -> int:
    time = message.get("timestamp")
    return int(time) if isinstance(time, int | float) and not isinstance(time, bool) else stored_ms


def title_of(store: Store, session: str) -> str:
    """A session's first question, on a line."""
    return shortened(first_prompt(store, session), TITLE_CHARS)


def first_prompt(store: Store, session: str) -> str:
    """A session's first question, masked, without its agent's additions; else its first command."""
    aside = ""
    for message in _said_first(store, session):
        if words_left(message) is not None:
            return ARCHIVED
        words = asked(said_by(message))
        if words and not is_aside(words):
            return _beginning(topic(words))
        aside = aside or words
    return _beginning(aside)


def _beginning(said: str) -> str:
    return passage(mask_secrets(said), (), _PROMPT_CHARS).text if said else ""


def _said_first(store: Store, session: str) -> Iterator[dict[str, Any]]:
    numbers = iter(range(1, _TITLED_BY[-1] + 1))
    for count in _TITLED_BY:
        among = [turn_id(session, number) for number in islice(numbers, count)]
        turns = store.heads(among)
        for fields in (turns[id].fields for id in among if id in turns):
            for address in filter(None, (fields.get("user"), *(fields.get("others") or ()))):
                with suppress(ForedeckError, LookupError, TypeError, ValueError):
                    message = load_with_words(address, store.blob)
                    if message.get("role") == "user":
                        yield message


def _of_turn(head: Head, source: Fetched) -> Iterator[SearchedText]:
    fields = head.fields
    addresses = [
        *((f"other {n}", address) for n, address in enumerate(fields.get("others") or ())),
        ("user", fields.get("user")),
        ("assistant", fields.get("assistant")),
    ]
    for part, address in addresses:
        if not address:
            continue
        message = load_with_words(address, source.blob)
        role = str(message.get("role") or part)
        for kind, text in (("thinking", thinking_of(message)), (role, said_by(message))):
            if text.strip():
                yield SearchedText(
                    document=head.id,
                    token=head.token,
                    part=f"{part} thinking" if kind == "thinking" else part,
                    digest=address,
                    type="message",
                    role=kind,
                    object=chat_id(fields["session"]),
                    time_ms=time_of(message, head.time_ms),
                    session=fields["session"],
                    message=head.id,
                    turn=fields.get("user_turn"),
                    task=fields.get("task"),
                    said=text,
                    is_archived=words_left(message) is not None,
                )


def said_by(message: Mapping[str, Any]) -> str:
    """A message's text without thinking and calls; of a pruned one its words."""
    if (remains := words_left(message)) is not None:
        return remains.get("said") or ""
    other = (message.get(name) for name in ("summary", "command", "output"))
    texts = [_joined(message.get("content"), "text"), *(text for text in other if text)]
    return "\n".join(text for text in texts if isinstance(text, str) and text)


def thinking_of(message: Mapping[str, Any]) -> str:
    if (remains := words_left(message)) is not None:
        return remains.get("thinking") or ""
    return _joined(message.get("content"), "thinking")


def words_left(message: Mapping[str, Any]) -> Mapping[str, str] | None:
    """A pruned message's words by kind."""
    remains = message.get(WORDS_LEFT)
    return remains if isinstance(remains, dict) else None


def _joined(content: Any, kind: str) -> str:
    if isinstance(content, str):
        return content if kind == "text" else ""
    blocks = content if isinstance(content, list) else ()
    texts = (block.get(kind) for block in blocks if isinstance(block, dict))
    return "\n".join(text for text in texts if isinstance(text, str))


def _whole(head: Head) -> partial[SearchedText]:
    return partial(SearchedText, document=head.id, token=head.token, part="", object=head.id)


def _of_toolcall(head: Head, source: Fetched) -> SearchedText:
    fields = head.fields
    arguments = unpack(fields.get("args") or {}, source.blob)
    details = unpack(fields.get("details"), source.blob)
    changed = details.get("diff") if isinstance(details, dict) else None
    parts = [*_strings(arguments, "args"), *_strings(changed, "details.diff")]
    paths = (arguments.get(name) for name in _PATH_ARGUMENTS)
    return _whole(head)(
        digest=fields.get("text_hash") or "",
        type="toolcall",
        role=str(fields.get("tool") or ""),
        time_ms=source.asked_ms(head),
        session=str(fields.get("chat_ref") or "").removeprefix("chat:") or None,
        message=fields.get("turn_ref"),
        status=fields.get("status"),
        path=next((path for path in paths if isinstance(path, str) and path), None),
        said="\n".join(text for _, text in parts),
        output=source.content(head),
        fields=tuple(parts),
    )


def _of_file(head: Head, source: Fetched) -> SearchedText:
    history = history_source(head.fields)
    return _whole(head)(
        digest=head.fields["text_hash"],
        type="file",
        role="",
        time_ms=version_ms(head),
        session=None if history is None else history.session,
        path=(head.fields.get("source") or {}).get("path"),
        output=source.content(head),
    )


def _of_compaction(head: Head, source: Fetched) -> SearchedText:
    fields = head.fields
    parts = [*_strings(fields.get("short"), "short"), ("", source.content(head))]
    return _whole(head)(
        digest=fields.get("text_hash") or "",
        type="compaction",
        role="",
        time_ms=fields.get("time_ms") or head.time_ms,
        session=fields.get("session"),
        said="\n".join(text for _, text in parts if text),
        fields=tuple(parts),
    )


def _of_observation(head: Head, source: Fetched) -> SearchedText:
    fields = head.fields
    parts = [("", source.content(head))]
    for name in ("current_task", "suggestion"):
        parts += _strings(fields.get(name), name)
    return _whole(head)(
        digest=fields["text_hash"],
        type=head.type,
        role=str(fields.get("mode") or fields.get("level")),
        time_ms=fields.get("to_ms") or fields["time_ms"],
        session=fields["session"],
        said="\n".join(text for _, text in parts if text),
        fields=tuple(parts),
    )


def _of_memory(head: Head) -> SearchedText:
    fields = head.fields
    return _whole(head)(
        digest=head.token,  # a version takes the place of the one before, even with its text
        type="memory",
        role=fields["category"],
        time_ms=fields["learned_ms"],
        said="\n".join(filter(None, (fields["fact"], fields.get("native")))),
    )


def _of_task(head: Head, source: Fetched) -> SearchedText:
    fields = head.fields
    labels = " ".join(fields.get("labels") or ())
    text = "\n".join(filter(None, (fields["title"], labels, source.content(head))))
    output = fields.get("summary") or ""
    return _whole(head)(
        # A claim or a lease that was renewed makes a version, and no new text.
        digest=hash_text(f"{fields['status']}\0{text}\0{output}"),
        type="task",
        role=fields["status"],
        time_ms=fields.get("updated_ms") or head.time_ms,
        task=head.id,
        said=text,
        output=output,
    )


def _strings(value: Any, name: str) -> Iterator[tuple[str, str]]:
    stack = [(name, value, True)]
    while stack:
        at, item, is_named = stack.pop()
        if isinstance(item, str) and item:
            yield at, item
        elif isinstance(item, dict):
            for key, inner in reversed(item.items()):
                plain = is_named and _PLAIN_KEY.fullmatch(key) is not None
                stack.append((f"{at}.{key}" if plain else at, inner, plain))
        elif isinstance(item, list):
            for number in reversed(range(len(item))):
                stack.append((f"{at}[{number}]" if is_named else at, item[number], is_named))
