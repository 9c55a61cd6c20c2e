"""The arguments of commands that measure, and of the engine."""

from __future__ import annotations

from argparse import ArgumentTypeError

from foredeck.cli.arguments import CONFIG, JSON, NUMBER, PATH, USUAL, arguments
from foredeck.cli.registry import Command, later
from foredeck.model.own_tools import DEFAULT_FACILITIES, FACILITY_TOOLS, Facility
from foredeck.store import STORES


def facilities_of(text: str) -> tuple[Facility, ...]:
    """The facilities that an argument lists. Raises `ArgumentTypeError`."""
    asked = [] if text == "none" else text.split(",")
    if unknown := [name for name in asked if name not in FACILITY_TOOLS]:
        known = ", ".join(FACILITY_TOOLS)
        raise ArgumentTypeError(f"there is no {unknown[0]!r}; there are {known}, and none alone")
    return tuple(facility for facility in FACILITY_TOOLS if facility in asked)


REPLAY = Command(
    description="""
    Run recorded sessions through foredeck, call by call, and show what a model would have been
    shown: how much, what it would have cost beside plain Pi, how often it was rewritten and why,
    and whether a provider would accept every prompt. No model is asked. Each session is replayed on
    a private store; your own store and configuration are not used. Calls are those on the branch of
    the file's last entry. Sessions of Claude Code and Codex are replayed as if they had been Pi's,
    without their subagents. The exit code is 1 if a session had an error or an invalid prompt.
    """,
    example="foredeck replay ~/.pi/agent/sessions --prompts /tmp/prompts",
    configure=arguments(
        f"""
        paths: PATH...  a session file of Pi (*.jsonl, any version of its format), of Claude Code or
            Codex, packed (*.jsonl.gz) or not, or a folder of them
        --store {"|".join(STORES)}  keep the objects in SQLite (default), or in an XTDB node of the
            run's own
        --layout L  anchored (default) or pools
        --policy P  the policy that decides which content stays (default: %(default)s; see
            docs/configuration.md)
        --tools F  the groups of tools that are declared with every prompt, and paid for:
            {", ".join(FACILITY_TOOLS)}, or none (default: {",".join(DEFAULT_FACILITIES)})
        as_model: --as MODEL  as if this model had given all answers, such as claude-opus-5-5 or
            gpt-6.2-sol: its prices, its cache, and what its reasoning is bound to; --ttl, --cache
            and --prices override it
        --ttl SECONDS  after how long the provider's cache is assumed to expire (default: the
            model's, else 300)
        --cache ideal|anthropic|openai  the prompt cache to plan for: one that keeps every prefix
            (default without --as), or one by a provider's documented rule
        --prices P  anthropic (default without --as: cached 0.1, written 1.25 of the input price),
            openai (0.1, 1), no-cache (every token in full), or a JSON file with input, cacheRead
            and cacheWrite
        --prompts DIR  write every assembled prompt to DIR/<file stem>/<call>.json
        --keep DIR  keep each session's store in DIR/<file stem>, a state folder: `foredeck sessions
            --home` reads it
        --window TOKENS  context window of the recorded models, which recordings do not contain
            (default: %(default)s)
        --set KEY=VALUE...  set a configuration key; your own configuration is not used
        {JSON}
        """,
        paths=PATH,
        store={"default": "sqlite"},
        layout={"default": "anchored"},
        policy={"default": "adaptive"},
        tools={"type": facilities_of, "metavar": "F,..."},
        ttl=NUMBER,
        prompts=PATH,
        keep=PATH,
        window=NUMBER | {"default": 200_000},
    ),
    run=later("replay_command"),
)


def _dollars(text: str) -> float:
    try:
        amount = float(text.removeprefix("$"))
    except ValueError:
        amount = 0.0
    if not 0 < amount < float("inf"):
        raise ArgumentTypeError(f"must be an amount in dollars above 0, not {text!r}")
    return amount


EVAL = Command(
    description="""
    Have a model work on tasks, in every round once with plain Pi and once with foredeck, and
    compare how many pass their own checks, and with how many calls and tokens, at what cost and in
    what time. Each run has a HOME, a Pi configuration, a store and a copy of the task's files of
    its own; of yours it uses Pi's keys and models, and the environment.

    YOU PAY FOR THE MODEL as you do in Pi, and the commands that it decides on run on this machine.
    --budget stops at an amount; rounds that only one side has finished by then are kept, but not
    compared. After an interruption the same command continues with the missing runs. --set tries
    settings on foredeck's side. docs/evaluation.md explains how to write a task.

    JSON: {"model", "rounds", "tasks": {NAME: {"pi": {"runs", "passed", "calls", "tokens", "cost",
    "cost_per_pass", ...}, "foredeck": ...}}, "all"}.
    """,
    example="foredeck eval --long --model anthropic/claude-haiku-4-5 --budget 5",
    configure=arguments(
        f"""
        [TASKS]  a task's folder, or a folder of them (default: the ten that come with foredeck)
        --model M  the model, as `pi --model` takes it
        --rounds N  how often each side does each task (default: %(default)s)
        --long  use the four long tasks that come with foredeck (80 calls and more) instead of the
            ten short ones
        --budget DOLLARS  start no more runs once this amount is spent
        --results FILE  where results are kept, one line each (default: evaluations.jsonl in the
            state folder)
        --keep  keep the temporary folders of the runs
        --pi PROGRAM  the Pi to run (default: the one on the PATH)
        --extension PATH  foredeck's extension (default: the checkout or package that this command
            is in)
        {USUAL}
        """,
        model={"required": True},
        rounds=NUMBER | {"default": 1},
        budget={"type": _dollars},
    ),
    run=later("eval_command"),
)


ENGINE = Command(
    description="""
    Serve one host: JSON-RPC requests on stdin, one per line, answers on stdout, the log on stderr
    (docs/protocol.md). The Pi extension starts this; run it by hand to see whether it starts. It
    exits when its input ends.
    """,
    example='echo \'{"jsonrpc":"2.0","id":1,"method":"ping"}\' | foredeck engine',
    configure=arguments(CONFIG),
    run=later("engine_command"),
)
