"""Long messages of the user's as objects: made when the message is met, or when it folds."""

from __future__ import annotations

from foredeck.context.messages.items import Item
from foredeck.context.state.index import Entry
from foredeck.context.state.objects import Objects
from foredeck.model.canonical import hash_text
from foredeck.model.documents import PASTE_CHARS, UserDocument, user_object_id
from foredeck.model.messages import texts_in


def paste_of(item: Item) -> str | None:
    """The one long text of a user's message; None where it has none, or several."""
    if item.kind != "user":
        return None
    long = [text for text in texts_in(item.blocks) if len(text) >= PASTE_CHARS]
    return long[0] if len(long) == 1 else None


def user_object(objects: Objects, text: str) -> Entry:
    """The object of a text of the user's, made if there is none yet; the caller commits it."""
    id = user_object_id(hash_text(text))
    known = objects.index.by_object.get(id)
    if known is not None:
        return objects.index.entries[known]
    head = objects.workspace.head(id)
    if head is not None:
        return objects.see_head(head)
    document = UserDocument.of(text)
    objects.workspace.put(document)
    return objects.see_document(document)
