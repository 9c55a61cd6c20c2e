"""What the provider has reported for the prompt that was sent last."""

from __future__ import annotations

from foredeck.context.alignment import Alignment
from foredeck.context.gauge import Calibrator
from foredeck.context.items import IMAGE_CHARS
from foredeck.context.session import Session


def take_report(session: Session, alignment: Alignment, calibrator: Calibrator) -> list[int] | None:
    """Learn from the answer to the call that the session stands at, where it is new here.

    Returns what was counted of that call: `[ordinal, read, written, fresh]`, in tokens. Nothing
    is learned from a call that went out without us: its bytes are known, but not what stood
    around them.
    """
    record = session.log.records.get(session.current or "")
    if record is None or record["decision"].get("kind") == "host":
        return None
    sent = record["kept"] + len(record["keys"])
    if alignment.matched != sent or sent >= len(alignment.items):
        return None
    answer, stats = alignment.items[sent], record["stats"]
    known = answer.key.address in session.log.known
    if answer.usage is None or known or answer.model != record["model"].get("name"):
        return None
    images, tokens = stats.get("images") or (0, 0)
    chars = stats["chars_sent"] - images * IMAGE_CHARS
    calibrator.learn(answer.model, chars, answer.usage.total - tokens)
    usage = answer.usage
    return [record["ordinal"], usage.read, usage.written, usage.fresh]
