"""What is wrong with a duck's bus, what it costs, and how to put it right.

`survey` looks, `checks` judge what it saw, `fixer` writes what differs. Looking writes nothing.
"""
