"""The live engine page: controls, picture, link, and the tools that look closer."""
