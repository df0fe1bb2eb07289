"""Pure functions from a trace or a state to what a page shows: payloads, tables, sentences, colours.

Nothing here computes memory arithmetic of its own; every number is a field of a `CacheState` or of an event.
"""
