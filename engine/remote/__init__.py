"""A remote server, seen from outside: its KV events over ZMQ, its metrics and its API over HTTP.

    kv_events         one message of the stream: bytes -> events
    sequence_tracker  gaps, restarts and repeats, from the sequence numbers of messages
    feed              one endpoint's messages in order; replay requests those that were missed
    subscriber        the sockets and their thread
    history           what was seen, within bounds, at any step of it, with statistics by seconds
    server_clock      how far the server's clock is from ours
    timeline          stream and metrics by seconds, on one axis
    radix_tree        stored blocks as trees of prefixes
    report            the figures of one step that a page shows
    metrics           /metrics of vLLM and SGLang under one set of names
    scraper           reads them once a second, by http
    detokenizer       token ids as text, through the server's own /detokenize
    stoppable_thread  what subscriber, scraper and detokenizer are
    prompt            sends a prompt to the server's API, and finds the blocks it caused
    server            all of these together: a trace source
    recording         streams in files
    publisher         the other end: numbered messages and a replay socket

`python -m engine.remote record | replay | print` does the same from a command line.
"""
