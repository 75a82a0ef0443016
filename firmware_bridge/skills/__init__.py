"""Skill bundles, read without torch and checked whole before anything moves."""
