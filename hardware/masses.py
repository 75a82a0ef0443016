"""How heavy the duck's links are, and where: in the axes of `kinematics.py`, each in the frame of its link.

Source: `inertial` elements of the MJCF of pollen-robotics/microduck_rl (`robot_walk.xml`), as in `duck.xml`.
"""

from __future__ import annotations

from typing import NamedTuple


class Mass(NamedTuple):
    """What a link weighs.

    Attributes:
        kilograms: its mass [kg].
        centre: its centre of mass in the link's frame [m].
    """

    kilograms: float
    centre: tuple[float, float, float]


TRUNK = Mass(0.199224, (-0.0226332, -2.70828e-05, 0.00280064))
LINKS = {
    "left_hip_yaw": Mass(0.0230406, (0.00099414, 0.0, -0.0168917)),
    "left_hip_roll": Mass(0.00618934, (-0.00829992, 0.014815, 0.0)),
    "left_hip_pitch": Mass(0.0482067, (-0.0228838, 0.0134531, -0.006766)),
    "left_knee": Mass(0.0215844, (0.0, 0.00953505, -0.0318937)),
    "left_ankle": Mass(0.0300246, (0.00615742, -0.0156585, -0.0137483)),
    "neck_pitch": Mass(0.0368414, (0.0, -0.0141665, 0.025)),
    "head_pitch": Mass(0.00572, (0.0, -0.0145, 0.0116641)),
    "head_yaw": Mass(0.0486, (-0.000166657, -0.00500964, 0.0178065)),
    "head_roll": Mass(0.188766, (0.0324761, 0.00120047, 0.00460523)),
    "right_hip_yaw": Mass(0.0230406, (0.00099414, 0.0, -0.0168917)),
    "right_hip_roll": Mass(0.00618934, (-0.00829992, -0.014815, 0.0)),
    "right_hip_pitch": Mass(0.0482067, (-0.0228838, -0.0134531, -0.006766)),
    "right_knee": Mass(0.0215844, (0.0, -0.00953505, -0.0318937)),
    "right_ankle": Mass(0.0300251, (0.00615539, 0.0156566, -0.0137482)),
}
"""Mass of what each joint moves, without what further joints carry."""
TOTAL = TRUNK.kilograms + sum(link.kilograms for link in LINKS.values())
"""Mass of the duck [kg]."""
