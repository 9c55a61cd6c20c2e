"""Histories of coding agents, read into the store as sessions like any other.

lines       the JSON objects of a file: bounded, counted, `.gz` too
records     what the readers yield: sessions and their messages, whatever the format
claude_code, codex, pi    one reader for each format; pure
formats     which format a file is in, by its content
exchanges   records grouped: what was said, one answer, the results of its tools
standing    how far a session has been read in, as its own document says
writer      exchanges become turns and tool calls, by the same code as an engine's
ingesting   files, one after the other, and what came of each
transcripts  a recorded session, to be replayed
recordings  any of these files as such a session, with its tools as Pi's
"""
