"""What each experiment of the lab asks for and shows. The engines behind them are `engine/lab`'s."""
