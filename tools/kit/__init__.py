"""The offline kit: a folder for a memory stick, from which the app is installed without a network."""
