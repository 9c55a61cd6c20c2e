"""Histories of coding agents, read into the store as sessions like any other.

lines       the JSON objects of a file: bounded, counted, `.gz` too
records     what the readers yield, grouped into exchanges, and a session to be replayed
claude_code, codex, pi    one reader for each format; pure
tools       other agents' tool calls by the names and arguments of Pi's
recordings  finding files, telling their format, and reading one to be replayed
progress    how far a session has been read in, as its own document says
files       versions of files, by what tools have shown and written
shell_files, patches    what Codex's commands and patches say of files
ingesting   files, one after the other, and what came of each
"""
