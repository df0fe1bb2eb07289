"""The memory-related output of vLLM and SGLang, read line by line.

    shapes     which lines are known, and the values in each
    start      what one start of a server said, put together: memory, pool, and what happened to it since
    explain    what each line says, which setting changes it and which way, and what is often misread

    log = read_log(text)
    log.starts[-1].num_tokens, log.lines[0].readings ...
    explain(log, line)

Versions of vLLM from 0.6 to 0.32 and of SGLang to 0.5. Nothing here stores or sends the text.
"""
