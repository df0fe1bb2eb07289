"""What can go wrong while a model is fetched and loaded. Every message is one plain sentence plus what to do."""


class ModelLoadError(Exception):
    """The model cannot be loaded; the message says why and what to do about it."""


class ModelUnavailableError(ModelLoadError):
    """The weights are not on this machine and cannot be fetched now (no network, no disk space, not found)."""


class UnsupportedModelError(ModelLoadError):
    """The weights are there, but this engine does not know how to run them."""
