"""Texts whose characters span several bytes, code points and tokens."""

TEXTS = [
    "The red fox jumps.",
    "Café, naïve, cafe\u0301",  # one accent composed, one combining
    "👩\u200d👩\u200d👧\u200d👦 and 🏳️\u200d🌈",
    "日本語のテキスト",
    "مرحبا بالعالم",
    "tabs\tand  blanks   \n\n  kept ",
    "",
]
