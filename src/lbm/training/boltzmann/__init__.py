"""The machine that learns: knowledge as cubes, the network, its chains, and values that are missing."""
