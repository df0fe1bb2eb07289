"""Somebody else's server, seen from outside: its KV events over ZMQ, its metrics and its API over HTTP.

    kv_events   one message of the stream: bytes -> events
    sequence    gaps, restarts and repeats, from the numbers of messages
    history     what was seen, within bounds, at any moment of it
    subscriber  the sockets and their thread
    metrics     /metrics of vLLM and SGLang under one set of names
    recording   streams in files
    server      all of these together: a trace source

`python -m engine.remote record | replay | print` does the same from a command line.
"""
