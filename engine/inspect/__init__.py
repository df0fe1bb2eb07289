"""Experiments on real engines: each module asks one question and answers it with figures that the engine produced.

Nothing here draws. Every experiment works on scratch engines of its own, or only reads a live one.
"""
