"""The head: what stands before the chat beside it, as one block of foredeck's own.

section     what writes into the head
composing   one text of all sections, within one budget
"""
