"""The engine: one per Pi process.

engine       answers the requests of docs/protocol.md; `requests` in the open session
current      the session that is open, forgotten where work on it fails; the store
opening      makes a session ready for work: state, files, assembler
opened       the session at work
facilities   what a session has beside its chat: sections of the head, tools of their own
commands     what the user types
asking       asking a model
background   the jobs beside the agent, which may ask one
watching     follows the files of the open session between requests
"""
