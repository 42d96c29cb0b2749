"""Randomized campaigns that look for lost data, wrong data, crashes and hangs.

Run one with ``python -m campaigns NAME --seed 7 --seconds 60``; docs/reliability.md says what each
one proves. A case depends on nothing but the seed and its number: a finding can be repeated.
"""
