"""Is this machine ready? Checks of everything a workshop needs, each failure with its fix: `python -m engine.doctor`.

No module here imports torch at its top: the doctor must be able to say that torch is what is missing.
"""
