"""The search for the best worlds: what a world loses, and the routes to those that lose least."""
