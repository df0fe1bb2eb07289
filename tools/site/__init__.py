"""The lessons as plain HTML files for any static host: `python -m tools.site FOLDER`."""
