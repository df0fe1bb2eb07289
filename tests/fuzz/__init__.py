"""Bad input, at random: `python -m tests.fuzz --inputs 50000`, and a few hundred of each in every test run."""
