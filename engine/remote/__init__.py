"""Somebody else's server, seen from outside: its KV events over ZMQ, its metrics and its API over HTTP.

    kv_events   one message of the stream: bytes -> events
    sequence    gaps, restarts and repeats, from the numbers of messages
    feed        one endpoint's messages put in order; replay asks for those that were missed
    subscriber  the sockets and their thread
    history     what was seen, within bounds, at any moment of it; flow counts it by seconds
    forest      stored blocks as trees of prefixes; report what a page says of one moment
    metrics     /metrics of vLLM and SGLang under one set of names; scraper looks once a second, by http
    prompt      a prompt through the server's API, and the blocks it caused
    server      all of these together: a trace source
    recording   streams in files
    publisher   the other end: numbered messages and a replay socket

`python -m engine.remote record | replay | print` does the same from a command line.
"""
