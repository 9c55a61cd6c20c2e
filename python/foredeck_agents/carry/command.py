from __future__ import annotations

from pathlib import Path

from foredeck.cli.arguments import CHOSEN, NUMBER, USUAL, arguments
from foredeck.cli.registry import Command, later

COMMAND = Command(
    description=(
        "Let a session go on in another agent: its chat, folded as after a pause, becomes a\n"
        "session of that agent's own, which the agent itself resumes. The new session has the\n"
        "handles of the first, and is linked to it."
    ),
    example="foredeck carry 0199f3a2 --to claude",
    configure=arguments(
        f"""
        session: [SESSION]  its id or its start, its name, or an agent's session file ({CHOSEN})
        --to pi|claude|codex|opencode  the agent (default: you are asked)
        --dry-run  say how large it is, what its first prompt costs and what is left out
        --fit TOKENS  fold until the prompt has at most so many tokens
        --model NAME  the model, such as anthropic/claude-opus-5-5, for the cost
        --folder FOLDER  where it goes on (default: where it worked)
        --private  carry a private session, which the other agent keeps like its own
        {USUAL}
        """,
        fit=NUMBER,
        folder={"type": Path},
    ),
    run=later("foredeck_agents.carry.carrying"),
)
