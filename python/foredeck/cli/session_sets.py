"""A session's sets at a call: index, pool, active and pinned."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from foredeck.cli.output import fitted_table
from foredeck.context.state.call_log import CallLog, load_record
from foredeck.context.state.index import Member, Sets
from foredeck.lookup.objects import Tracking
from foredeck.lookup.sessions import count_calls
from foredeck.model.calls import CallRecord, in_order
from foredeck.model.documents import Fields, chat_id, system_prompt_id
from foredeck.model.figures import counted, when
from foredeck.model.records import call_id
from foredeck.names import name_of
from foredeck.store.protocol import Head, Token
from foredeck.store.store import Store


@dataclass(frozen=True, slots=True)
class SetsAtCall:
    """The sets after a call of a session; empty for call 0."""

    session: str
    call: int
    calls: int
    time_ms: int | None
    index: list[dict[str, Any]]
    """Each object with the newest version that the session had seen."""
    sets: Sets

    def to_json(self) -> dict[str, Any]:
        sets = self.sets
        sets_by_name = {"pool": sets.pool, "active": sets.active, "pinned": sets.pinned}
        return {
            "session": self.session,
            "call": self.call or None,
            "index": self.index,
            **{name: _handles(members) for name, members in sets_by_name.items()},
            "waiting": _handles(sets.waiting),
        }

    def to_text(self) -> str:
        sets = self.sets
        waiting = f" ({len(sets.waiting)} more out of view)" if sets.waiting else ""
        totals = (
            f"{counted(len(self.index), 'object')} in the index, {len(sets.pool)} in the pool, "
            f"{len(sets.active)} active, {len(sets.pinned)} pinned{waiting}"
        )
        rows = [(o["handle"], _states(o), o["version"], self._own_name(o)) for o in self.index]
        table = fitted_table([("handle", "state", "version", "object"), *rows])
        return f"session {self.session}, {self._when()}\n{totals}\n\n{table}\n"

    def _own_name(self, object: Mapping[str, Any]) -> str:
        return str(object["name"]).removesuffix(f":{self.session}")

    def _when(self) -> str:
        if self.time_ms is None:
            return "before its first call"
        return f"call {self.call} of {self.calls}, {when(self.time_ms)}"


def _states(object: Mapping[str, Any]) -> str:
    gone = "deleted" if object["deleted"] else object["tracking"]
    notes = [gone] * (gone in ("deleted", "orphaned")) + ["locked"] * object["locked"]
    return ", ".join([str(object["state"]), *notes])


def sets_at_call(
    store: Store, session: str, call: int, tracking: Tracking | None = None
) -> SetsAtCall:
    """The sets after a call of a session; `tracking` says whether its files can be read now."""
    calls = count_calls(store, session)
    record = store.head(call_id(session, call)) if call else None
    if record is None:
        index = _index(store, session, None, Sets(), tracking)
        return SetsAtCall(session, 0, calls, None, index, Sets())
    sets = CallLog().replay(record.id, partial(load_record, store)).sets
    index = _index(store, session, record.token, sets, tracking)
    return SetsAtCall(session, call, calls, CallRecord(record.fields).time_ms, index, sets)


def call_by_then(store: Store, session: str, time_ms: int) -> int:
    heads = store.query("call", {"session": session})
    stored_ms = {head.id: head.time_ms for head in heads}
    records = in_order(head.fields for head in heads)
    place = bisect_right([stored_ms[record.id] for record in records], time_ms)
    return records[place - 1].ordinal if place else 0


def _index(
    store: Store, session: str, at: Token | None, sets: Sets, tracking: Tracking | None
) -> list[dict[str, Any]]:
    heads = store.query("member", {"session": session})
    known = (head if at is None else store.head(head.id, at) for head in heads)
    members = [member for member in known if member is not None]
    members.sort(key=lambda member: int(member.fields["ordinal"]))
    return [_indexed(store, member, sets, tracking) for member in members]


def _indexed(store: Store, member: Head, sets: Sets, tracking: Tracking | None) -> dict[str, Any]:
    newest, fields = Member.of(member).ref, member.fields
    version = store.head(newest.object, Token(newest.token))
    now = None if tracking is None else store.head(newest.object)
    session = str(fields["session"])
    # They are always in view, and in none of the sets, which only what can leave is in.
    locked = newest.object in (chat_id(session), system_prompt_id(session))
    return {
        "handle": f"@{fields['ordinal']}",
        "object": newest.object,
        "type": fields["object_type"],
        "name": _name(fields, version),
        "version": f"v{newest.version}",
        "token": newest.token,
        "state": "active" if locked else sets.innermost(fields["ordinal"]),
        "locked": locked,
        "deleted": version is not None and version.fields.get("state") == "deleted",
        "tracking": tracking.state(now) if tracking is not None and now is not None else None,
    }


def _name(member: Fields, seen: Head | None) -> str:
    if seen is not None and seen.type in ("file", "toolcall"):
        return name_of(seen)
    label = member.get("label") if member["object_type"] == "file" else None
    return str(label or member["object"])


def _handles(members: Any) -> list[str]:
    return [f"@{ordinal}" for ordinal in sorted(members)]
