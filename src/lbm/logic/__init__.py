"""What it is equivalent to: cubes that exclude one another."""
