"""Why two prompts share no more blocks than they do."""
