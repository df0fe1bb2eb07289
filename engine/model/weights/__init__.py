"""Where weights come from: the embedded model, a tiny random one, a local folder, or the Hugging Face hub."""
