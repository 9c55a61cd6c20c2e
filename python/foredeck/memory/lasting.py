"""Whether a sentence of the user's says by itself that it holds for longer than the work at hand.

Only the user may say so: an extractor that obeys a web page would call any order of the user's a
preference. In languages that are not known here, and where a preference is put otherwise, the user
is asked.
"""

from __future__ import annotations

import re

_SPACED = re.compile(
    r"\b(?:"
    r"always|never|prefer(?:s|red)?|(?:don'?t|do not) (?:ever|like|use|want)|from now on|by default"
    r"|in (?:future|general)|generally|usually|every time|whenever|remember|as a rule"
    r"|(?:i|we) (?:like|hate|use|avoid|want)"
    r"|(?:we|i)(?:'ve| have)? (?:decided|agreed|settled|chose)"
    r"|let'?s (?:stick|go|use|keep)|our (?:convention|standard|policy|rule)s?"
    r"|immer|nie(?:mals)?|bevorzuge\w*|ab (?:jetzt|sofort)|in zukunft|grunds\u00e4tzlich|merk dir"
    r"|wir (?:nutzen|verwenden|haben (?:beschlossen|entschieden))"
    r"|toujours|jamais|pr\u00e9f\u00e8re|d\u00e9sormais|dorénavant|siempre|nunca|prefiero|sempre|mai|preferisco"
    r"|prefiro|altijd|nooit|zawsze|nigdy"
    r")\b",
    re.IGNORECASE,
)
_UNSPACED = re.compile(
    "\u3044\u3064\u3082|\u5e38\u306b|\u5fc5\u305a|\u4eca\u5f8c|\u3053\u308c\u304b\u3089|\u597d\u307f|\u597d\u304d|\u65b9\u91dd"
    "|\u6c7a\u3081|\u603b\u662f|\u59cb\u7ec8|\u6c38\u8fdc|\u4ece\u4e0d|\u4eca\u540e|\u4ee5\u540e|\u559c\u6b22|\u504f\u597d|\u51b3\u5b9a"
    "|\ud56d\uc0c1|\uc808\ub300|\uc55e\uc73c\ub85c|\uc120\ud638"
)


def says_it_lasts(sentence: str) -> bool:
    """Whether it holds a word that does."""
    return bool(_SPACED.search(sentence.replace("\u2019", "'")) or _UNSPACED.search(sentence))
