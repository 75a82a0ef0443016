"""Measuring what one duck's parts deviate by: joint zeros, the IMU's mounting, the gyroscope's bias."""
