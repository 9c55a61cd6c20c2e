"""The ways to assemble that `foredeck replay` compares when none is named."""

from __future__ import annotations

from dataclasses import replace

from foredeck.bench.replay_host import Options

RIVALS: tuple[tuple[str, str], ...] = (
    ("pools", "seed-window"),
    ("anchored", "seed-window"),
    ("anchored", "last-n"),
    ("anchored", "careful"),
    ("anchored", "adaptive"),
    ("anchored", "lean"),
)
"""Layout and policy; the options that are asked for stand before them."""


def rivals(options: Options) -> list[Options]:
    """Each rival, with everything else as in `options`; what `options` says itself is left out.

    The store makes no difference to what is sent: they all use the embedded one.
    """
    own = (options.layout, options.policy)
    return [
        replace(options, layout=layout, policy=policy, prompts=None, store="sqlite")
        for layout, policy in RIVALS
        if (layout, policy) != own
    ]
