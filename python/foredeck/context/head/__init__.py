"""The head: what comes before the chat, as one block of foredeck's own.

section     what writes into the head
budget      how long it may be
lines       what the model reads around and in them
composing   one text of all sections, within one budget
"""
