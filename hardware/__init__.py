"""The duck as data, and the contract that simulator and robot share.

A leaf package: standard library, numpy and array-api-compat only.
"""
