"""The real Claude Code, Codex and opencode on the providers' twin, with and without foredeck."""
