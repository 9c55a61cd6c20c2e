"""The arguments of commands that measure, and of the engine."""

from __future__ import annotations

from argparse import ArgumentTypeError

from foredeck.cli.arguments import CONFIG, JSON, NUMBER, PATH, command
from foredeck.model.own_tools import DEFAULT_FACILITIES, FACILITY_TOOLS, Facility


def facilities_of(text: str) -> tuple[Facility, ...]:
    """The facilities that an argument lists. Raises `ArgumentTypeError`."""
    names = [] if text == "none" else text.split(",")
    if unknown := [name for name in names if name not in FACILITY_TOOLS]:
        facilities = ", ".join(FACILITY_TOOLS)
        raise ArgumentTypeError(
            f"there is no {unknown[0]!r}; there are {facilities}, and none alone"
        )
    return tuple(facility for facility in FACILITY_TOOLS if facility in names)


REPLAY = command(
    """
    Run recorded sessions through foredeck, and show what they would have cost, how often prompts
    were rewritten and why, and whether a provider would accept each. No model is asked; your own
    store and configuration are not used. The exit code is 1 after an error or an invalid prompt.
    """,
    example="foredeck replay ~/.pi/agent/sessions --prompts /tmp/prompts",
    options=f"""
    paths: PATH...  a session file of Pi, Claude Code or Codex, or a folder of them
    --layout L  anchored (default) or pools
    --policy P  what decides which content stays (default: %(default)s)
    --tools F  the declared tools: {", ".join(FACILITY_TOOLS)}, or none
        (default: {",".join(DEFAULT_FACILITIES)})
    as_model: --as MODEL  as if this model had given all answers, such as claude-opus-5-5
    --warm  with --as: as if Pi had kept the cache warm, at its cost
    --ttl SECONDS  lifetime of the cache (default: the model's, else 300)
    --cache ideal|anthropic|openai|breakpoints  the cache to plan for (default
        without --as: ideal, which keeps every prefix; breakpoints: OpenAI's from GPT-5.6 on)
    --prices P  the prices of this model, or of a JSON file with input, cacheRead and
        cacheWrite, in dollars per million tokens
    --prompts DIR  write every prompt to DIR/<file stem>/<call>.json
    --keep DIR  keep each session's store in DIR/<file stem>, a state folder
    --window TOKENS  context window of the recorded models (default: %(default)s)
    --set KEY=VALUE...  set a configuration key; your own configuration is not used
    """,
    common=JSON,
    run="foredeck_lab.replay_command",
    paths=PATH,
    layout={"default": "anchored"},
    policy={"default": "adaptive"},
    tools={"type": facilities_of, "metavar": "F,..."},
    ttl=NUMBER,
    prompts=PATH,
    keep=PATH,
    window=NUMBER | {"default": 200_000},
)


def _dollars(text: str) -> float:
    try:
        amount = float(text.removeprefix("$"))
    except ValueError:
        amount = 0.0
    if not 0 < amount < float("inf"):
        raise ArgumentTypeError(f"must be an amount in dollars above 0, not {text!r}")
    return amount


EVAL = command(
    """
    Have a model work on tasks, with plain Pi and with foredeck, and compare how many pass their
    own checks, at what cost and in what time. YOU PAY FOR THE MODEL, and its commands run on this
    machine. The same command continues an interrupted run. docs/evaluation.md explains how to
    write a task.

    JSON: {"model", "rounds", "tasks": {NAME: {"pi": {"runs", "passed", "calls", "tokens",
    "cost", "cost_per_pass", ...}, "foredeck": ...}}, "all"}.
    """,
    example="foredeck eval --long --model anthropic/claude-haiku-4-5 --budget 5",
    options="""
    [TASKS]  a task's folder, or a folder of them (default: the ten that come with foredeck)
    --model M  the model, as `pi --model` takes it
    --rounds N  how often each side does each task (default: %(default)s)
    --long  the four long tasks (80 calls and more) instead of the ten short ones
    --budget DOLLARS  start no more runs beyond this amount
    --results FILE  where results are kept (default: evaluations.jsonl in the state folder)
    --keep  keep the temporary folders of the runs
    --pi PROGRAM  the Pi to run (default: the one on the PATH)
    --extension PATH  foredeck's extension (default: this command's own)
    """,
    run="foredeck_lab.eval_command",
    model={"required": True},
    rounds=NUMBER | {"default": 1},
    budget={"type": _dollars},
)


ENGINE = command(
    """
    Serve one host: JSON-RPC on stdin and stdout, the log on stderr (docs/protocol.md). The Pi
    extension starts this.
    """,
    example='echo \'{"jsonrpc":"2.0","id":1,"method":"ping"}\' | foredeck engine',
    common=CONFIG,
    run="engine_command",
)
