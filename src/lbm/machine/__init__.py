"""What it weighs: restricted Boltzmann machines with named units."""
