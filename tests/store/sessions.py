"""A session as the engine leaves it in a store, small but with every kind of reference."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from foredeck.model.calls import CallDocument
from foredeck.model.documents import (
    ChatDocument,
    Document,
    FileDocument,
    Provenance,
    SystemPromptDocument,
    ToolcallDocument,
    chat_id,
    session_object_id,
    system_prompt_id,
)
from foredeck.model.messages import pack, put_blob, store_message
from foredeck.model.records import (
    MemberDocument,
    NicknameDocument,
    TurnDocument,
    VersionRef,
    call_id,
    member_id,
    nickname_id,
)
from foredeck.store.portable.export import export_session
from foredeck.store.protocol import Batch, Token
from foredeck.store.store import Store

from .documents import PROVENANCE, file, session_wrapper

LONG = "a long line of output\n" * 60
AWKWARD_TEXT = "\0 \u2028 \U0001f600 \ud83d end " * 80
IMAGE = bytes(range(256)) * 4


def ref_of(document: Document, version: int = 1, token: str = "self") -> VersionRef:
    """A pin of a sealed document."""
    return VersionRef(
        object=document.id,
        version=version,
        token=token,
        content_hash=document.content_hash,
        text_hash=document.text_hash,
        metadata_view_hash=document.metadata_view_hash,
    )


@dataclass
class SampleSession:
    """Writes a session into a store, one call after the other."""

    store: Store
    id: str = "0199aaaa-0000-7000-8000-000000000001"
    parent: str | None = None
    parent_call: str | None = None
    calls: int = 0
    members: int = 0

    def begin(self) -> Token:
        """The documents that every session has."""
        origin = Provenance(origin=self.id, generator="system")
        own = session_object_id(self.id)
        prompt = SystemPromptDocument(
            id=system_prompt_id(self.id),
            session_ref=own,
            content="You are an agent. " * 40,
            tools=[{"name": "read"}],
            provenance=origin,
        ).seal()
        chat = ChatDocument(id=chat_id(self.id), session_ref=own, provenance=origin).seal()
        fields = {"cwd": "/repo", "host_file": "/sessions/one.jsonl", "provenance": origin}
        wrapper = session_wrapper(self.id, parent_session=self.parent, **fields)
        puts = [wrapper, prompt, chat, self.member(prompt), self.member(chat)]
        return self.store.commit(Batch(puts=puts))

    def member(self, document: Document, token: str = "self") -> MemberDocument:
        """A new index entry."""
        self.members += 1
        return MemberDocument(
            id=member_id(self.id, self.members),
            session=self.id,
            ordinal=self.members,
            object=document.id,
            object_type=document.type,
            label=document.id,
            version_ref=ref_of(document, token=token),
        ).seal()

    def toolcall(self, id: str, blobs: dict[str, bytes], **fields: Any) -> ToolcallDocument:
        """A result with an image, its whole output, and long arguments."""
        return ToolcallDocument(
            id=id,
            tool="write",
            args=pack({"path": "/repo/a.py", "content": "long argument\n" * 80}, blobs),
            args_display="/repo/a.py",
            chat_ref=chat_id(self.id),
            turn_ref=f"turn:{self.id}:{self.calls + 1}",
            provider_call_id=id,
            details=pack({"diff": "+ line\n" * 200, "nested": {"$text": "not ours"}}, blobs),
            images=[put_blob(IMAGE, blobs)],
            full_output=put_blob(f"everything of {id}".encode() * 99, blobs),
            provenance=PROVENANCE,
            **fields,
        ).seal()

    def call(self, toolcall: str | None = None, *files: FileDocument) -> Token:
        """One model call: a turn with a tool call and files, and the record of it all."""
        number = self.calls + 1
        blobs: dict[str, bytes] = {}
        objects: list[Document] = list(files)
        if toolcall is not None:
            pins = {"file_version_ref": ref_of(files[0]).model_dump()} if files else {}
            refs = [document.id for document in files]
            content = f"{LONG}{toolcall}"
            objects.append(self.toolcall(toolcall, blobs, content=content, file_refs=refs, **pins))
        members = [self.member(document) for document in objects]
        user = store_message({"role": "user", "content": f"{AWKWARD_TEXT}{number}"}, blobs)
        assistant = store_message(_assistant_message(number, toolcall), blobs)
        turn = TurnDocument(
            id=f"turn:{self.id}:{number}",
            session=self.id,
            user=user,
            assistant=assistant,
            toolcall_ids=[] if toolcall is None else [toolcall],
            user_turn=number,
            extras={user: pack({"attachments": [f"{LONG}attached {number}"]}, blobs)},
        ).seal()
        record = self._record(number, [["a1", user], [None, assistant]], blobs)
        self.calls = number
        return self.store.commit(Batch([*objects, turn, *members, record], blobs))

    def _record(self, number: int, keys: list[list[Any]], blobs: dict[str, bytes]) -> CallDocument:
        prompt = self.store.get(system_prompt_id(self.id), SystemPromptDocument)
        head = self.store.head(system_prompt_id(self.id))
        assert prompt is not None
        blocks = pack([{"type": "text", "text": f"@{number}\n{LONG}"}, {"keep": 0}], blobs)
        alone = put_blob(f"a part of its own {number}".encode(), blobs)
        return CallDocument(
            id=call_id(self.id, number),
            session=self.id,
            ordinal=number,
            parent=call_id(self.id, number - 1) if number > 1 else self.parent_call,
            shared=2 * (number - 1),
            keys=keys,
            tip=f"tip {number}",
            ops=[[2 * number, "full", blocks, 1, 1, None, alone]],
            says=[[0, [{"role": "user", "blocks": [{"type": "text", "text": self.id}]}]]],
            system=ref_of(prompt, token=head.token),
            time_ms=1_700_000_000_000 + number,
            layout="anchored",
            policy="seed-window",
            sets={"active+": [number]},
        ).seal()

    def name(self, document: FileDocument, nickname: str) -> Token:
        """Give a file a nickname, with the claim on it."""
        named = document.model_copy(update={"nickname": nickname}).seal()
        claim = NicknameDocument(id=nickname_id(nickname), object=document.id).seal()
        return self.store.commit(Batch(puts=[named, claim]))


def _assistant_message(number: int, toolcall: str | None) -> dict[str, Any]:
    image = {"type": "image", "data": "QUJD" * 400, "mimeType": "image/png"}
    call = {"type": "toolCall", "id": toolcall, "arguments": {"text": LONG, "$text": "theirs"}}
    return {"role": "assistant", "content": [image, call, {"n": number}]}


def write_sample(store: Store, id: str = SampleSession.id) -> SampleSession:
    """A session of four calls with two files, one of them changed, renamed and named."""
    session = SampleSession(store, id)
    session.begin()
    first = file("/repo/a.py", f"first\n{AWKWARD_TEXT}", source_hash="0a" * 32)
    session.call(f"toolu_{id}_1", first, file("/repo/b.py", "short"))
    store.commit(Batch(puts=[file("/repo/a.py", "second", source_hash="0b" * 32)]))
    session.call(f"toolu_{id}_2")
    session.name(file("/repo/a.py", "third\n" * 300), f"main of {id}")
    session.call()
    store.commit(Batch(puts=[file("/repo/b.py", None, state="deleted")]))
    session.call(f"toolu_{id}_3", file("/repo/c\u2028.py", ""))
    return session


def dump(store: Store) -> list[tuple[Any, ...]]:
    """Everything in a store but that something was imported, by transaction and id: for comparing
    whole stores."""
    found: list[tuple[Any, ...]] = []
    for change in store.changes_since(None, limit=1_000_000):
        if change.type == "imported":
            continue
        document = store.get(change.id, Document, change.token)
        found.append((change.token, change.time_ms, change.id, document.model_dump()))
    return sorted(found, key=lambda row: (row[1], row[0], row[2]))


def exported(store: Store, session: str = SampleSession.id) -> str:
    """The export file of a session, as one text."""
    lines: list[str] = []
    export_session(store, session, lines.append)
    return "".join(lines)


def lines_of(text: str) -> list[bytes]:
    """The file as an open one would give it."""
    return text.encode().splitlines(keepends=True)
