"""What the benchmarks share: problems, the peers, our own side, and how results are kept and shown."""
