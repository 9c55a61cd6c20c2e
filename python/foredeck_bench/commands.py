"""The commands that `foredeck bench` offers in a checkout."""

BENCH_COMMANDS: dict[str, tuple[str, str]] = {
    "bench": ("measure.run", "measure what foredeck costs on this machine"),
    "bench crash": (
        "crash.run",
        "kill engine, Pi or the XTDB node again and again, and count what is lost",
    ),
    "bench agents": ("agents", "let several agents work on one database, and see what is lost"),
    "bench backup": ("backups", "time a backup of a large store, and the commits beside it"),
    "bench blame": ("blame", "time who wrote the lines of long files with many versions"),
    "bench eval": (
        "evaluating.run",
        "compare plain Pi and foredeck on the shipped tasks, with a scripted model",
    ),
    "bench extraction": (
        "remembering.recorded",
        "read recorded sessions out with a fixed extractor, and count the junk",
    ),
    "bench excerpts": ("excerpts", "count how much of what agents wrote their observers are shown"),
    "bench facts": (
        "facts",
        "ask at the end of 3,000 calls for what was said in the first of them",
    ),
    "bench growth": ("growth", "put many sessions into one store, and see whether anything drifts"),
    "bench guard": ("guard", "let two agents change one file a thousand times, and time the check"),
    "bench library": (
        "library.comparing",
        "hold a loop in Python beside Pi, on the same conversation",
    ),
    "bench lifecycle": (
        "lifecycle.run",
        "run every case of a session's life on both stores and versions of Pi",
    ),
    "bench observations": (
        "observing.command",
        "kill whoever observes a session, let two race for it, and count",
    ),
    "bench memory": (
        "remembering.crash",
        "kill whoever reads out, accepts or imports memory, and count what is lost",
    ),
    "bench notes": ("vault", "take in a vault of 10,000 notes, and walk its graph"),
    "bench proxy": (
        "proxy_load",
        "time what the proxy adds to an agent's requests, and count what it takes",
    ),
    "bench recall": (
        "search.recall",
        "ask long conversations questions whose answering messages are known",
    ),
    "bench rewind": ("rewind", "kill rewindings half-way, and see whether the files come back"),
    "bench search": (
        "search.command",
        "measure whether searching finds what is looked for, how fast, at what cost",
    ),
    "bench storm": (
        "storm",
        "change many files under a running engine, and count what it gets wrong",
    ),
    "bench tasks": (
        "task_race",
        "let agents race for tasks, and time what a large project asks for",
    ),
    "bench ui": ("inspector", "time the pages of the inspector over a large store"),
    "bench wire": ("wire", "send the engine what no host should, and see that it lives"),
    "bench worked": (
        "worked",
        "print what failing commands would be answered, over recorded sessions",
    ),
}
"""By name: the module in foredeck_bench that has it as `COMMAND`, and a one-line summary."""
