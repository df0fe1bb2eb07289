"""An OpenAI-compatible server around the engine: completions, chat, KV events, metrics.

    fields         a request's JSON, field by field: read, ignored because it has no effect, or refused by name
    protocol       those fields -> CompletionRequest: prompts and SamplingParams
    async_engine   the one thread that runs the engine
    output_stream  outputs of that thread, for a coroutine that waits
    responses      outputs -> JSON, whole or in chunks
    kv_events      the engine's log -> published KV events
    metrics        the engine's log -> /metrics, under vLLM's names
    api            the routes
    server         all of these together

`python -m engine.serve` starts it.
"""
