"""A duck without a duck: emulated servos and IMU board behind a pseudo-terminal, with faults on order."""
