"""Randomized campaigns that look for lost data, wrong data, crashes and hangs.

Run one with ``python -m campaigns NAME --seed 7 --seconds 60``; docs/reliability.md describes what
each one tests. The seed and the number of a case determine its random numbers, so that a finding
can be repeated.
"""
