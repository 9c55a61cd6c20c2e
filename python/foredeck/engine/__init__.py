"""The engine: one per Pi process.

engine       answers the requests of docs/protocol.md
watching     follows the files of the open session between requests
resumption   what is kept beside the store for the engine that opens a long session next
garbage      when Python looks for garbage
"""
