"""Run the examples in the docstring of a public item, by its dotted name, on each rank."""

import doctest
import pydoc
import sys

import numpy as np

import ambar

if __name__ == "__main__":
    [test] = doctest.DocTestFinder(recurse=False).find(
        pydoc.locate(sys.argv[1]), sys.argv[1], globs={"ambar": ambar, "np": np}
    )
    sys.exit(doctest.DocTestRunner().run(test).failed)
