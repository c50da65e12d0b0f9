"""Solvers: proofs by SAT, and RC2 and pyganak in a process of their own."""
