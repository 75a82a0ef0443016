import numpy as np
import pytest

from hardware import joints


def test_order_and_ids_are_those_of_the_robots_own_runtime() -> None:
    assert dict(zip(joints.JOINT_NAMES, joints.SERVO_IDS, strict=True)) == {
        "left_hip_yaw": 20,
        "left_hip_roll": 21,
        "left_hip_pitch": 22,
        "left_knee": 23,
        "left_ankle": 24,
        "neck_pitch": 30,
        "head_pitch": 31,
        "head_yaw": 32,
        "head_roll": 33,
        "right_hip_yaw": 10,
        "right_hip_roll": 11,
        "right_hip_pitch": 12,
        "right_knee": 13,
        "right_ankle": 14,
    }
    assert joints.NUM_JOINTS == 14
    assert joints.MOUTH_ID == 34


def test_ranges_in_degrees() -> None:
    legs = [(-25, 30), (-22, 22), (-90, 90), (-90, 90), (-90, 90)]
    head = [(-90, 60), (-90, 90), (-170, 170), (-25, 25)]
    wanted = [*legs, *head, (-30, 25), *legs[1:]]
    got = list(zip(np.rad2deg(joints.LOW), np.rad2deg(joints.HIGH), strict=True))
    assert np.allclose(got, wanted)


def test_stand_is_the_keyframe_and_lies_inside_the_ranges() -> None:
    leg = [0, -0.0872665, -0.457924, -0.004940, 0.452984]
    assert joints.STAND.tolist() == [*leg, 0.3490659, 0.3490659, 0, 0, *(-angle for angle in leg)]
    assert ((joints.LOW < joints.STAND) & (joints.STAND < joints.HIGH)).all()


def mirror(angles: np.ndarray) -> np.ndarray:
    return angles[list(joints.MIRROR_INDEX)] * joints.MIRROR_SIGN


def test_mirror_exchanges_the_legs_and_keeps_the_pitch_of_the_head() -> None:
    angles = np.arange(1.0, 15.0)
    assert mirror(angles).tolist() == [-10, -11, -12, -13, -14, 6, 7, -8, -9, -1, -2, -3, -4, -5]
    assert mirror(mirror(angles)).tolist() == angles.tolist()


def test_duck_and_its_ranges_are_their_own_mirror_image() -> None:
    assert np.array_equal(mirror(joints.STAND), joints.STAND)
    ends = np.stack([mirror(joints.LOW), mirror(joints.HIGH)])
    assert np.array_equal(ends.min(axis=0), joints.LOW)
    assert np.array_equal(ends.max(axis=0), joints.HIGH)


@pytest.mark.parametrize("name", ["STAND", "LOW", "HIGH", "MIRROR_SIGN"])
def test_shared_numbers_cannot_be_changed(name: str) -> None:
    with pytest.raises(ValueError, match="read-only"):
        getattr(joints, name)[0] = 1.0
