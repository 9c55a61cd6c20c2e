"""Working memory: what a project or a session keeps at hand, as a page that agents and people
write.

markdown  sections of a page, and what of it is worth showing
schema    pages that are JSON, and what their schema allows
memory    reading and changing a page in the store
section   the page before the chat
"""
