"""The model of a page: waiting for it, and the line that says what runs."""
