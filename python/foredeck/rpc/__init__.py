"""The seam to the host: a JSON-RPC peer over stdin and stdout (docs/protocol.md).

wire        stdin and stdout, bytes to lines to JSON values; the errors of the wire
peer        order, cancellation, each request to its handler, answers, requests of ours
host_model  the models of the host, and `/foredeck doctor`
server      `foredeck engine`, and the methods of the protocol, on an `engine.engine.Engine`
"""
