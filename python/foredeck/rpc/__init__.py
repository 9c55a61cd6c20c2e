"""The seam to the host: a JSON-RPC peer over stdin and stdout (docs/protocol.md).

framing, codec     bytes to lines to JSON values
transport          what carries lines: stdio (real), memory (in one process)
peer               requests, order, cancellation, answers; dispatch and reverse calls
methods, parsing   the protocol's methods, their params parsed, mapped to an `api.EngineApi`
errors, jsonrpc    the error codes; jsonrpcserver without what makes it slow to import
server, parent     `foredeck engine`, which ends with the process that started it
"""
