"""The engine: one per Pi process.

engine       answers the requests of docs/protocol.md
current      the session that is open; forgotten where work on it fails
opening      makes a session ready for work: state, files, assembler
notes        (`project_notes`) notes that were written between sessions
pool         the section of the head that names what the project has
facilities   what a session has beside its chat: sections of the head, tools of their own
recovery     the store, and a fresh one in place of a damaged one
settings     the parts of the configuration that the context layer needs
watching     follows the files of the open session between requests
resumption   what is kept beside the store for the engine that opens a long session next
garbage      when Python collects garbage
"""
