"""Prolog's terms, its text, programs as indexed facts and rules, and goals solved within a budget."""
