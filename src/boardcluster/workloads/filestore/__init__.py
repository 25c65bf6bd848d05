"""A replicated file system under load: large blocks, small blocks, small files, and a lost worker.

Source: block sizes of Lee, Oh and Park 2021, Table 10, and Lee and Park 2026, Tables 6 and 7.
"""
