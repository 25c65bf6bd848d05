"""Pi: how many points of a square lie within the circle inscribed in it.

Computation alone: no input, and hardly any data between nodes. MapReduce runs Hadoop's stock
example, whose points are a Halton sequence; Spark draws random points from a generator whose seed
is a parameter.
Source: Lee and Park 2026, section "Pi computation", Tables 15 to 17; Lee, Oh and Park 2021, section
V-D, Tables 18 and 19.
"""
