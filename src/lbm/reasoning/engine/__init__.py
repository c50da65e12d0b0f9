"""The engine: compiled chains in many lanes, and what prepares a problem for them."""
