"""Observations: chat is read in the background, and dense dated remarks stand for it later.

messages.py       what an observer is shown of the conversation
modes.py          what it looks for, by the kind of work
chunks.py         which stretch of messages is observed next
timing.py         when: pure rules over counted tokens
recall.py         observations and reflections as they were stored, and which are a branch's own
"""
