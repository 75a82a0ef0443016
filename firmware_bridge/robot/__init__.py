"""The duck as a body: servos and IMU on one bus, in joint order and SI units."""
