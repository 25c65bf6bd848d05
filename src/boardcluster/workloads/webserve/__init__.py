"""A farm of HTTP servers under load: how much it serves, how fast, and through a fault.

Source: sizes after SPECweb99 (Standard Performance Evaluation Corporation, 1999), whose four
classes have 35, 50, 14 and 1 % of the requests; latency at fixed rates after G. Tene, "How NOT to
measure latency".
"""
