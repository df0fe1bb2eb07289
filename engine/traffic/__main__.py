"""`python -m engine.traffic FILE`: the prefix-cache hit rate of a file's requests by the size of the pool.

python -m engine.traffic trace.jsonl --block-size 512 --pool 1000 --pool 20000
python -m engine.traffic prompts.jsonl --tokenizer FOLDER      a folder with tokenizer.json; without it, bytes
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from engine.traffic.blocks import block_sizes_of, block_trace
from engine.traffic.formats import Encode, Traffic, read_traffic
from engine.traffic.hit_curve import hit_curve, pool_sizes_for
from engine.traffic.shared_prefix import shared_prefix


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table. Returns 0, or 1 and one sentence when there is nothing to count."""
    parser = argparse.ArgumentParser(prog="python -m engine.traffic", description=__doc__.splitlines()[0])
    parser.add_argument("file", type=Path)
    parser.add_argument("--block-size", type=int, help="tokens of a block; 512 for hash ids, else 16")
    parser.add_argument("--pool", type=int, action="append", help="blocks of the pool; may be given several times")
    parser.add_argument("--tokenizer", type=Path, help="a folder with tokenizer.json")
    options = parser.parse_args(arguments)
    try:
        with options.file.open(encoding="utf-8") as lines:
            traffic = read_traffic(lines, _encoder(options.tokenizer))
        trace = block_trace(traffic, options.block_size or block_sizes_of(traffic)[0])
    except (OSError, ValueError) as error:
        print(error, file=sys.stderr)
        return 1
    _print_problems(traffic)
    if not len(traffic):
        print(f"{options.file}: no request that can be used.", file=sys.stderr)
        return 1
    print(f"{len(traffic):,} requests, {trace.num_prompt_tokens:,} prompt tokens, blocks of {trace.block_size}")
    prefix = shared_prefix(trace)
    if prefix.num_blocks:
        print(f"{prefix.num_requests:,} requests begin with the same {prefix.num_tokens:,} tokens")
    print(f"{'blocks':>12} {'hit tokens':>16} {'hit rate':>9} {'evictions':>12} {'refused':>9}")
    for result in hit_curve(trace, options.pool or pool_sizes_for(trace)):
        hits = result.hit_blocks * trace.block_size
        rate = hits / max(trace.num_prompt_tokens, 1)
        print(f"{result.num_blocks:>12,} {hits:>16,} {rate:>9.2%} {result.num_evicted:>12,} {result.num_refused:>9,}")
    return 0


def _encoder(folder: Path | None) -> Encode:
    if folder is None:
        return lambda text: text.encode()
    from engine.model.tokenizer import load_tokenizer

    return load_tokenizer(folder, ()).encode


def _print_problems(traffic: Traffic) -> None:
    for line, why in traffic.problems:
        print(f"line {line}: {why}; skipped", file=sys.stderr)
    if traffic.num_unusable > len(traffic.problems):
        print(f"{traffic.num_unusable - len(traffic.problems):,} more lines skipped", file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
