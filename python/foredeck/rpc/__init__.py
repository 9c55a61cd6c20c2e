"""The seam to the host: a JSON-RPC peer over stdin and stdout (docs/protocol.md).

framing     bytes to lines to JSON values; the errors of the wire
transport   what carries lines: stdin and stdout
peer        order, cancellation, answers, requests of ours; dispatch: a request to its handler
methods     the methods of the protocol, their parameters parsed, on an `engine.engine.Engine`
host_model  the models of the host, and `/foredeck doctor`
server      `foredeck engine`, which ends with the process that started it
"""
