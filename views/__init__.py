"""How things look and how a tab lives: the only place for Streamlit and Plotly besides pages/.

Nothing here computes memory arithmetic of its own; every number is a field of a `CacheState` or of an event.
"""
