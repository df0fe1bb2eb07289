"""The page of somebody else's server: what it publishes, as figures, map and prefix trees."""
