"""The offline kit: a folder for a memory stick from which the app is installed and run with the network off."""
