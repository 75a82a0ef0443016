"""Training MicroDuck skills in simulation."""
