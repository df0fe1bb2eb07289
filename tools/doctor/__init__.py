"""Is this machine ready? Checks of what a workshop needs, each failure with its fix: `python -m tools.doctor`.

No module here imports torch at its top: the doctor must be able to report that torch is missing.
"""
