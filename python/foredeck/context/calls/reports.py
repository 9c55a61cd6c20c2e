"""What the provider has reported of the prompt that was sent last, and a model without prices."""

from __future__ import annotations

from foredeck.context.intake.alignment import Alignment
from foredeck.context.messages.items import IMAGE_CHARS
from foredeck.context.state.chat import Chat
from foredeck.context.state.gauge import Calibrator
from foredeck.context.state.objects import Workspace
from foredeck.model.call_values import CalledModel, ReportedUsage
from foredeck.model.records import calibration_id


def take_report(chat: Chat, alignment: Alignment, calibrator: Calibrator) -> ReportedUsage | None:
    """Learn from the answer to the session's newest call, where it is new here.

    Returns what was counted of that call. Nothing is learned from a call that went out without
    us: its bytes are known, but not what stood around them.
    """
    record = chat.branch_record
    if record is None or record.is_host:
        return None
    sent = record.length
    if alignment.matched != sent or sent >= len(alignment.items):
        return None
    answer, stats = alignment.items[sent], record.stats
    known = answer.key.address in chat.log.known
    if answer.usage is None or known or answer.model != record.model.name:
        return None
    chars = stats.chars_sent - stats.images * IMAGE_CHARS
    usage = answer.usage
    calibrator.learn(answer.model, chars, usage.total - stats.image_tokens)
    return ReportedUsage(record.ordinal, usage.read, usage.written, usage.fresh)


def unpriced(workspace: Workspace, chat: Chat) -> str | None:
    """What to tell the user where the newest call's model has no prices: at its first call, once
    in a store. None where there is nothing to tell."""
    record = chat.branch_record
    model = record.model if record else CalledModel()
    name = model.name
    if not model.guessed or workspace.head(calibration_id(name)) is not None:
        return None
    if chat.log.models[name] > 1:
        return None
    return (
        f"No prices are known of {name}: a token read from its cache counts {model.read:g}, a "
        f"written one {model.write:g} of an input token. `cost` in Pi's models.json sets them."
    )
