"""What a provider says when it refuses a prompt, as far as it is about sealed reasoning."""

from __future__ import annotations

import re

_SEALS = re.compile(
    r"encrypted[ _-]?(?:content|reasoning)|thought[ _-]?signature|reasoning|thinking|signature",
    re.IGNORECASE,
)

_OTHER_CAUSE = re.compile(
    r"""
      \bmissing\b | \bwithout\ its\b | required\ following | must\ be\ followed | not\ found
    | organi[sz]ation | \bproject\b | \bapi[ _-]?key | \baccount | \bdeployment | \brout(?:e|ing)\b
    | (?:another|different|other)\ (?:model|provider|key|region)
    | unsupported | not\ support | unknown\ parameter | \beffort\b | \bbudget
    | \bquota | rate[ _-]?limit | overloaded | tim(?:ed|e)[ -]?out
    """,
    re.IGNORECASE | re.VERBOSE,
)
"""An item that another key or route has made, one that lacks its seal or what follows it, a setting
of the request, and what has nothing to do with the prompt."""


def is_about_seals(message: str) -> bool:
    """Whether a refusal may mean that sealed reasoning is bound to bytes that have changed: it
    names the reasoning or its signature, and no other cause that is known."""
    return bool(_SEALS.search(message)) and not _OTHER_CAUSE.search(message)
