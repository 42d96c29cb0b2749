"""Snapshots as datasets of yt, with the names and units of yt's own readers of RAMSES and AMReX.

`frontend` is what ``yt.load`` finds; `ramses` has trees of cells, cut into the domains of `octs`;
`plotfiles` has patches.
"""
