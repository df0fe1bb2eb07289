"""Our engine behind the API that everybody's tools speak: completions, chat, KV events, metrics.

    wishes      a request's JSON -> prompts and SamplingParams, or an error in the standard shape
    stepper     the one thread that touches the engine
    mailbox     what the thread has to say, for a coroutine that waits
    answers     outputs -> JSON, whole or in pieces
    kv_feed     the engine's log -> published KV events
    statistics  the engine's log -> /metrics, under vLLM's names
    api         the routes
    server      all of these together

`python -m engine.serve` starts it.
"""
