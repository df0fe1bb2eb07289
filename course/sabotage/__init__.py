"""Fault injection: break one thing in an engine, beside a healthy one."""
