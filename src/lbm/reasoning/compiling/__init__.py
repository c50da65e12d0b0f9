"""Compiling kernels: which of them are compiled, known without a compiler, and how that is done."""
