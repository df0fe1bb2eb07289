"""One line of JSON in, one line out: how a peer engine in another environment is told what to run.

Runs under that environment's interpreter, so it needs nothing but the standard library.

in   {"prompts": [[token ids], ...], "num_tokens": new tokens of each}
out  {"times": [seconds until every sequence had 1 token, 2 tokens, ...]}
The first line out, before any job, is {"engine": name and version}.
"""

import json
import os
import sys


def serve(engine, run):
    """Answer jobs until the input ends. `run(prompts, num_tokens)` returns the times.

    What the engine itself prints goes to standard error: standard output carries answers only.
    """
    answers = os.fdopen(_ANSWERS, "w", encoding="utf-8")

    def answer(record):
        answers.write(json.dumps(record) + "\n")
        answers.flush()

    answer({"engine": engine})
    for line in sys.stdin:
        job = json.loads(line)
        answer({"times": run(job["prompts"], job["num_tokens"])})


# Done when this module is imported, so import it before the engine.
_ANSWERS = os.dup(1)
os.dup2(2, 1)
