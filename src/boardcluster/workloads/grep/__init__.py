"""Grep: what a regular expression finds in a text.

MapReduce runs Hadoop's stock example, two jobs: one counts each text that the expression finds, one
sorts these by count. Spark runs a filter over the lines and saves those that match, so the two
engines do not do the same work; the 2026 paper compares them nevertheless and says so.
Source: Lee and Park 2026, section "Grep", Table 14, Figures 9 and 10.
"""
