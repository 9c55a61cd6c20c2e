"""The lines of ours that the model reads: short, stable, deterministic, and snapshot-tested.

Not here are the facts of digests (`digests.py`) and the refusals of tools (`ToolError`).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from foredeck.model.figures import cut
from foredeck.model.quoting import name as named
from foredeck.model.quoting import one_line, quoted, word

WHY_NO_CONTENT = {
    "binary": "it is not text",
    "huge": "it is too large; read it with offset and limit",
    "listed": "it was only listed; it cannot be reached from here",
    "deleted": "it was deleted",
    "unreadable": "it cannot be read",
    "special": "it is not a regular file",
    "pointer": "it is only pointed to, and nothing is fetched; read it with a tool of yours",
    "session": "what was said in it is its chat (chat:ID)",
}
"""By the state of a version that has no text."""


def deleted(older: int | None) -> str:
    """Why a deleted file has no text, with the version that the session can have."""
    why = WHY_NO_CONTENT["deleted"]
    return why if older is None else f"{why}; an older version may be had, such as v{older}"


def handle(ordinal: int, version: int | None = None) -> str:
    """`@12`, or `@12 v3` where a version must be named."""
    return f"@{ordinal}" if version is None else f"@{ordinal} v{version}"


def unchanged(name: str) -> str:
    """A result that says what a visible one, of this name, says already."""
    return f"Unchanged: the same as {name} above."


def contained(name: str) -> str:
    """A partial read of what is visible in whole."""
    return f"Unchanged: these lines are in {name} above."


def unlabelled(ordinal: int, tool: str, args: str) -> str:
    """The name of a visible result that shows no handle: it went out without us."""
    return f"@{ordinal} ({word(tool)} {quoted(args)})" if args else f"@{ordinal} ({word(tool)})"


def outside_project(path: str) -> str:
    """In place of a file that is not foredeck's to read by itself."""
    return f"{named(path)} is outside this project, and no tool has read it: use read."


def not_text(name: str, chars: int) -> str:
    """In place of what a host makes of bytes that are no text."""
    return (
        f"{name} is not text: {chars:,} characters that stand for its bytes are left out. "
        "Use bash (file, xxd, iconv) to see what is in it."
    )


def time_now(at: datetime, zone: str) -> str:
    """On a message that came after a pause; `zone` is the name that the host has for it."""
    # Days in English, whatever the locale of the process is.
    day = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")[at.weekday()]
    name = f"{named(zone)}, " if zone else ""
    return f"[foredeck] Now {day} {at:%Y-%m-%d %H:%M} ({name}{at.tzname()})."


def difference(ordinal: int, version: int, diff: str) -> str:
    """A re-read that differs little from the visible copy."""
    return f"@{ordinal} v{version}, changed since the copy above:\n{diff}"


def newer_copy(ordinal: int, version: int) -> str:
    """Head of a content whose older version is still visible."""
    return f"@{ordinal} v{version}, replaces the older copy above"


def older_copy(ordinal: int, version: int) -> str:
    """Head of an old version while a newer one is visible."""
    return f"@{ordinal} v{version}, older than the copy above"


def brought_up_to_date(ordinal: int, version: int) -> str:
    """Head of a read that shows a file as later calls have left it."""
    return f"@{ordinal} v{version}, with the later edits"


def old_version(ordinal: int, version: int) -> str:
    """Head of a version that is not the newest, while no newer one is visible."""
    return f"@{ordinal} v{version}, not the newest version"


def reference(
    ordinal: int, fields: Mapping[str, Any], *, chars: int, lines: str = "", images: int = 0
) -> str:
    """The line that is left of a folded result, below the call that it answers; `fields` are those
    of the tool call. `lines`: how many there are, or which of a file (`860-1059`)."""
    count = f"lines {lines}" if "-" in lines else f"{lines} lines"
    parts = [
        "failed" if fields.get("status") == "fail" else "",
        quoted(fields["args_display"]) if fields.get("args_display") else "",
        count if lines else "",
        f"{chars} chars",
        f"{images} images" if images > 1 else "1 image" if images else "",
    ]
    return f"@{ordinal} folded: {', '.join(filter(None, parts))}"


def done(ordinal: int) -> str:
    """What is left of a result that said no more than that a file was written."""
    return f"@{ordinal} done"


def folded_argument(ordinal: int, chars: int) -> str:
    """Replaces a long argument of an earlier tool call; the shim knows it by its form."""
    return f"<activate @{ordinal}: {chars} chars folded>"


def folded_paste(ordinal: int, chars: int, lines: tuple[int, int] | None) -> str:
    """Replaces the middle of a long message of the user's; the shim knows it by its form.

    `lines`: first and last line of what is left out, where that is made of whole lines.
    """
    which = f"lines {lines[0]}-{lines[1]}, " if lines else ""
    return f"<activate @{ordinal}: {which}{chars} chars folded>"


def pasted(ordinal: int) -> str:
    """The name of a long message of the user's, that shows no handle."""
    return f"@{ordinal} (in a message of the user's)"


def folded_answer(ordinal: int, turn: int, chars: int) -> str:
    """Replaces the middle of a long answer of an earlier turn."""
    return f'\n<activate "@{ordinal} turn {turn}": {chars} chars folded>\n'


def whole_call(arguments: Mapping[str, Any], result: str) -> str:
    """A tool call whose arguments were folded: each as it was, then its result."""
    sections = [
        f"{name}:\n{value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)}"
        for name, value in arguments.items()
    ]
    return "\n".join([*sections, f"result:\n{result}"])


def no_result() -> str:
    """Replaces the result of a call that never got one."""
    return "[foredeck] No result: the call was interrupted."


def object_line(ordinal: int, fields: Mapping[str, Any]) -> str:
    """One object as metadata: by its view if it has one, else as its type says. `path` is what
    the model calls a file."""
    kind = fields.get("type")
    if fields.get("view") is not None:
        return " ".join([f"@{ordinal} {kind}", *_viewed_fields(fields, fields["view"])])
    name = f" name={named(fields['nickname'])}" if fields.get("nickname") else ""
    if kind == "file":
        path = named(fields.get("path") or "")
        state = fields.get("state") or "text"
        note = "" if state == "text" else f" {state}"
        return f"@{ordinal} file {path} chars={fields.get('char_count') or 0}{note}{name}"
    if kind == "toolcall":
        return (
            f"@{ordinal} toolcall tool={word(fields.get('tool') or 'unknown')} "
            f"status={fields.get('status') or 'ok'} "
            f"args={quoted(fields.get('args_display') or '')}{name}"
        )
    if kind == "user":
        size = f"chars={fields.get('char_count') or 0} lines={fields.get('line_count') or 0}"
        return f"@{ordinal} user {size} {quoted(fields.get('first_line') or '')}{name}"
    if kind == "pointer":
        return f"@{ordinal} pointer {named(fields.get('locator') or '')}{name}"
    if kind == "compaction":
        return f"@{ordinal} compaction {one_line(str(fields.get('short')))}{name}"
    return f"@{ordinal} {kind}{name}"


def pool_heading() -> str:
    """First line of the metadata pool."""
    return "Objects known in this session (activate one by its @handle to see its content):"


def active_heading() -> str:
    """First line of the active content."""
    return "Content of the active objects:"


def newly_active_heading() -> str:
    """The same further down, where what stood above may not be changed yet."""
    return "Content of active objects that is new, or newer than above:"


def history_cut() -> str:
    """Comes first where the host's list begins with an answer instead of a question."""
    return "[foredeck] Earlier messages are not shown."


def deactivated(ordinal: int) -> str:
    """`deactivate` on an active object."""
    return f"@{ordinal} is inactive; its content leaves when the prompt is next rewritten."


def out_of_pool(ordinal: int) -> str:
    """`deactivate` on an object that is inactive already."""
    return f"@{ordinal} was inactive; it is off the list now."


def unpinned(ordinal: int) -> str:
    """`unpin` on a pinned object."""
    return f"@{ordinal} is no longer pinned."


def not_pinned(ordinal: int) -> str:
    """`unpin` on an object that is not pinned."""
    return f"@{ordinal} was not pinned."


def already_visible(name: str, *, pinned: bool) -> str:
    """`activate` or `pin` on what can be read already."""
    return f"{name} is above, and pinned." if pinned else f"{name} is above."


def no_content(ordinal: int, why: str) -> str:
    """`activate` on an object without text."""
    return f"@{ordinal} has no content to show: {why}."


def empty(ordinal: int) -> str:
    """`activate` on an empty text."""
    return f"@{ordinal} is empty."


def rest_of(name: str, shown: int, total: int) -> str:
    """How to have what follows the first `shown` characters; `name` is a handle."""
    return f'activate "{name} chars {shown + 1}-{total}" for the rest'


def cut_short(shown: int, total: int, rest: str) -> str:
    """Ends a content that is longer than what one activation may bring."""
    return f"\n[The first {shown:,} of {total:,} characters: {rest}.]"


def beginning_visible(name: str, shown: int, total: int, rest: str) -> str:
    """`activate` on a content whose beginning can be read already, and which is too long."""
    return f"The first {shown:,} of {total:,} characters of {name} are above: {rest}."


def left_out(ordinal: int, start: int, end: int, total: int) -> str:
    """Replaces the middle of a text that does not fit into the context window."""
    return (
        f"\n[foredeck] {end - start:,} of {total:,} characters do not fit here: "
        f'activate "@{ordinal} chars {start + 1}-{end}" shows some of them.\n'
    )


def no_longer_above(ordinal: int) -> str:
    """In place of a tool's word that something is above, once it is not any more."""
    return f"@{ordinal} is not above any more: activate it again if you need it."


def go_on() -> str:
    """Closes a turn whose beginning was compacted, where reasoning was bound to it."""
    return "[foredeck] The messages above were cut down to fit the context window. Go on."


def turn_ended() -> str:
    """Closes a turn after a pause, where what was folded was bound to reasoning of it."""
    return (
        "[foredeck] After a pause, older output above was folded, and your reasoning in this turn "
        "was left out. Go on with the task."
    )


def summarised(ordinal: int, pinned: Sequence[int] = ()) -> str:
    """Follows a summary that the host's model wrote; `pinned` has left the view with the chat."""
    pins = f" {pinned_away(pinned)}" if pinned else ""
    return (
        f'[foredeck] The summary above covers @{ordinal}: activate "@{ordinal} turns A-B" shows '
        f'these turns in full, "@{ordinal}::lost" what the summary leaves out.{pins}'
    )


def pinned_away(ordinals: Sequence[int]) -> str:
    """In a summary or after it: pinned objects that leave the view with the chat."""
    return f"Pinned, but out of view: {', '.join(map(handle, ordinals))}."


def cut_part(shown: int, total: int) -> str:
    """Ends a part of an object that is itself longer than what one activation may bring."""
    return f"\n[The first {shown:,} of {total:,} characters: ask for a smaller part.]"


def images_left_out(count: int) -> str:
    """Ends a message whose images do not fit into the context window."""
    subject = "An image is" if count == 1 else f"{count} images are"
    return f"[foredeck] {subject} left out here: the context window is too small."


def images_not_here(count: int) -> str:
    """Ends what `activate` answers where the host's tool results are text alone."""
    subject = "Its image is" if count == 1 else f"Its {count} images are"
    return f"{subject} stored, but cannot be shown here: open the file, or run the tool again."


def handles_of(session: str) -> str:
    """Precedes a text of another session's, in which handles name its own objects."""
    called = named(session)
    return f"[foredeck] Said in session {called}: what is @12 there is {called}:@12 here."


def images_unknown(ordinal: int, count: int) -> str:
    """`activate` on a result with images of no kind that a model can be sent."""
    subject = "An image of it is" if count == 1 else f"{count} images of it are"
    return f"{subject} no PNG, JPEG, GIF or WebP: run the tool of @{ordinal} again to see more."


def summary_heading(span: str, ordinal: int) -> str:
    """First line of a summary that foredeck writes; `span`: which turns it covers."""
    return (
        f'[foredeck] {span}, summed up without a model. activate "@{ordinal} turns A-B" shows '
        f'these turns in full, "@{ordinal}::lost" what is left out here.'
    )


def turns_span(first: int, last: int, begun: str = "", ended: str = "") -> str:
    """`Turns 3-7 (2026-02-02 03:40 +01:00 to ...)`; times are left out where none is known."""
    when = f" ({begun} to {ended})" if begun else ""
    return (f"Turns {first}-{last}" if last > first else f"Turn {first}") + when


def short_summary(span: str, questions: str, files: int, errors: int) -> str:
    """A summary in one line, for lists of objects."""
    return f"{span}: {questions}; {files} files, {errors} errors"


def question_heading(turn: int) -> str:
    """In a summary, before the question of the turn under way."""
    return f"Asked in turn {turn}, which is not done yet:"


def question_gap(chars: int, ordinal: int, turn: int) -> str:
    """Replaces the middle of such a question, if it is too long for a summary."""
    return f'\n({chars:,} chars left out: activate "@{ordinal} turns {turn}")\n'


def turn_line(turn: int, text: str) -> str:
    """In a summary: what was asked or answered in a turn."""
    return f"- turn {turn}: {one_line(text)}"


def file_line(ordinal: int, path: str, done: str, turn: int, state: str) -> str:
    """In a summary: a file, what was done to it, when last, and how it is now."""
    return f"- @{ordinal} {named(path)}: {done}, last in turn {turn}; {state}"


def error_line(ordinal: int | None, call: str, turn: int, error: str) -> str:
    """In a summary: a call that failed."""
    name = "" if ordinal is None else f"@{ordinal} "
    return f"- {name}{one_line(call)} (turn {turn}): {one_line(error)}"


def open_errors(count: int) -> str:
    """In a summary: failed calls that were not made again with success."""
    return f"- not fixed: {count} of the errors above"


def turn_under_way(turn: int) -> str:
    """In a summary: the newest turn goes on after what was compacted of it."""
    return f"- turn {turn} was not done"


def more_lines(count: int, first: int, last: int) -> str:
    """In a summary: lines that did not fit, and of which turns they were."""
    return f"- ... {count} more (turns {first}-{last})"


def pause(milliseconds: int, until: str) -> str:
    """In summaries and transcripts: work stood still for so long."""
    minutes = milliseconds // 60_000
    long = f"{minutes // 60} h {minutes % 60} min" if minutes >= 60 else f"{minutes} min"
    return f"(paused {long}, until {until})"


def turn_heading(turn: int, time: str) -> str:
    """First line of a turn in a transcript."""
    return f"--- turn {turn}" + (f", {time}" if time else "")


def message_heading(kind: str, *, stopped: bool) -> str:
    """Before a message in a transcript."""
    return f"--- {kind}{' (stopped)' if stopped else ''}"


def call_line(ordinal: int | None, tool: str, args: str, status: str) -> str:
    """A tool call in a transcript."""
    name = "" if ordinal is None else f" @{ordinal}"
    return f"--- toolcall{name} tool={word(tool)} args={quoted(args)} status={status}"


FIELD_WORDS = {
    "char_count": "chars",
    "file_type": "type",
    "line_count": "lines",
    "args_display": "args",
    "nickname": "name",
    "short_summary": "summary",
}
"""What the model reads for the names of some fields in a line of metadata."""

VIEWED_CHARS = 400
"""Most characters that such a line shows of one field."""


def _viewed_fields(fields: Mapping[str, Any], view: Sequence[str]) -> Iterator[str]:
    """The fields of a view, those that are empty left out. That a file has no text always shows."""
    for name in view:
        value = fields.get(name)
        if value is None or value == "":
            continue
        if name == "path":
            yield named(str(value))
        elif isinstance(value, str):
            yield f"{FIELD_WORDS.get(name, name)}={quoted(cut(value, VIEWED_CHARS))}"
        else:
            yield f"{FIELD_WORDS.get(name, name)}={json.dumps(value)}"
    if fields.get("state", "text") != "text" and "state" not in view:
        yield str(fields["state"])


def changed_on_disk(ordinal: int, path: str) -> str:
    """A visible file that something other than the agent has changed."""
    return f"[foredeck] @{ordinal} {named(path)} changed on disk: the copy above is old."


def overwritten_on_disk(ordinal: int, path: str, version: int) -> str:
    """A file that was saved while a write of the agent's was under way; `version`: what it held."""
    return (
        f"[foredeck] Something else saved @{ordinal} {named(path)} right before your write: "
        f'activate "@{ordinal} v{version}" shows that.'
    )


def deleted_on_disk(ordinal: int, path: str) -> str:
    """A visible file that something other than the agent has deleted."""
    return f"[foredeck] @{ordinal} {named(path)} was deleted on disk."


def moved_on_disk(ordinal: int, new: int, path: str, *, outdated: bool = False) -> str:
    """A visible file that has another name now, and with that another handle.

    `outdated`: what can be seen of it is not what was moved.
    """
    notice = f"[foredeck] @{ordinal} moved to {named(path)}, which is @{new}"
    return f"{notice}: the copy above is old." if outdated else f"{notice}."
