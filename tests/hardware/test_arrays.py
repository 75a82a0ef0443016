from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
import torch

from hardware.arrays import array_namespace


def test_numpy_arrays_belong_to_numpy_itself() -> None:
    assert array_namespace(np.zeros(3), np.zeros((), np.float32)) is np
    assert array_namespace(np.float64(1.0)) is np  # what arithmetic makes of an array without axes


def test_tensors_belong_to_a_library_that_keeps_to_the_array_api() -> None:
    xp = array_namespace(torch.zeros(2), torch.zeros(1))
    assert xp.concat((torch.zeros(1), torch.ones(1)), axis=-1).tolist() == [0.0, 1.0]


def test_arrays_of_two_libraries_are_refused() -> None:
    with pytest.raises(TypeError, match="Multiple namespaces"):
        array_namespace(np.zeros(3), torch.zeros(3))


def test_what_is_no_array_is_refused() -> None:
    with pytest.raises(TypeError):
        array_namespace([1.0])


def test_the_control_law_on_numpy_does_without_the_wrapper_that_costs_memory() -> None:
    code = (
        "import sys, numpy as np; from hardware import contract, rotations\n"
        "contract.step_command(np.zeros(3), np.ones(3), -np.ones(3), np.ones(3))\n"
        "head = contract.HeadMap(np.zeros(1)); head.pose(head.step(np.zeros(4), np.ones(4)))\n"
        "contract.advance_heading(np.zeros(()) + 1, np.zeros(3), np.zeros(3), np.float64(0))\n"
        "contract.clock_signal(contract.advance_clock(contract.start_clock(np.zeros(())), np.float64(1)))\n"
        "rotations.projected_gravity(np.array([1.0, 0.0, 0.0, 0.0]))\n"
        "print('array_api_compat.numpy' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
