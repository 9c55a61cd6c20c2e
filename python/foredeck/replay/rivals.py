"""The ways to assemble that `foredeck replay` compares when none is named."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from foredeck.replay.options import ReplayOptions

RIVALS: tuple[tuple[str, str], ...] = (
    ("pools", "seed-window"),
    ("anchored", "seed-window"),
    ("anchored", "last-n"),
    ("anchored", "careful"),
    ("anchored", "adaptive"),
    ("anchored", "lean"),
)
"""Layout and policy; the options that are asked for stand before them."""

WITHOUT_DIGESTS = "digests.max_tokens=0"
"""Evidence is to be known without them too, since a bag of names suits its measure."""


def rivals(options: ReplayOptions) -> list[ReplayOptions]:
    """Each rival, with everything else as in `options`; what `options` says itself is left out.

    The last is `options` without digests. The store makes no difference to what is sent: they
    all use the embedded one.
    """
    own = (options.layout, options.policy)
    plain = replace(options, prompts=None, store="sqlite")
    bare = replace(
        plain,
        settings=(*options.settings, WITHOUT_DIGESTS),
        name=f"{options.label}, no digests",
    )
    return [
        *(
            replace(plain, layout=layout, policy=policy)
            for layout, policy in RIVALS
            if (layout, policy) != own
        ),
        bare,
    ]


def with_heads(options: ReplayOptions, heads: Sequence[int]) -> list[ReplayOptions]:
    """The same once more for each length of a head, in tokens."""
    plain = replace(options, prompts=None, store="sqlite")
    return [replace(plain, head=n, name=f"{options.label}, head {n:,}") for n in heads]
