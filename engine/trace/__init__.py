"""The one event log: event types, their fold into a state, the codec, and figures counted from a state. No torch."""
