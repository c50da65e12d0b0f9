"""Data: columns, tables and files, and the named atoms that they become."""
