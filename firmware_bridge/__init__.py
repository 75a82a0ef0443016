"""What runs on the robot: servo bus, IMU, body, skills, safety and the control loop.

Imports numpy, pyserial and onnxruntime; never the trainer's libraries.
"""
