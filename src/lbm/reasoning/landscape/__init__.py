"""The energy landscape of a machine: taken apart into components, whose states are weighed block by block."""
