"""The servo bus: bytes, registers, ports and transactions with deadlines."""
