"""Observations: chat is read in the background, and dense dated remarks replace it later.

chunks.py     which messages come next, and how an observer reads them
rules.py      what it looks for, by the kind of work, and when
texts.py      remarks as text, and text as remarks
prompts.py    the instructions of observer and reflector
observers.py  those who write: a model, whose answer is checked; foredeck without one
reading.py    observations and reflections as stored, and which are a branch's own
lease.py      one operation at a time, and nothing kept twice
keeping.py    all of it from beginning to end, and what a user changes
"""
