"""The block table: blocks lie anywhere, the table keeps their order."""
