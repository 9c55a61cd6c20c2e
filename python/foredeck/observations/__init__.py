"""Observations: chat is read in the background, and dense dated remarks replace it later.

messages.py   what an observer is shown of the conversation
modes.py      what it looks for, by the kind of work
chunks.py     which span of messages is observed next
timing.py     when: pure rules over counted tokens
excerpt.py    the messages of a chunk as an observer reads them
names.py      the names in a text, and which of them nothing vouches for
texts.py      remarks as text, and text as remarks; parsing.py: a model's answer
prompts.py    the instructions of observer and reflector
recall.py     observations and reflections as stored, and which are a branch's own
lease.py      one operation at a time, and nothing kept twice
observers.py  those who write: a model; model_free.py: foredeck itself
documents.py  the documents of what was written
keeping.py    all of it from beginning to end
editing.py    what a user changes
"""
