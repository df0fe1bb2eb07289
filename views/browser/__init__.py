"""What a tab's browser is told and tells: its session and address, and text made harmless for it."""
