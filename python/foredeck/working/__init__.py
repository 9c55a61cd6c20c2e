"""Working memory: what a project or a session keeps at hand, as a page that agents and people
write.

markdown  sections of a page, and what of it is worth showing
memory    what a page may be, Markdown or JSON; reading and changing it in the store
section   the page before the chat
"""
