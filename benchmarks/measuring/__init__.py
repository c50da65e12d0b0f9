"""What the benchmarks share: problems, the peers, our own side, and how results are kept and shown.

Kernels that are not in numba's cache are compiled when they are first called, before anything is timed.
"""

from lbm.reasoning.engine.ready import compile_here

compile_here()
