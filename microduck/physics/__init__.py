"""Stepping many ducks: one narrow interface, one module per engine."""
