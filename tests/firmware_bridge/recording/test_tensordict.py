"""The trainer's library reads a recording as it is."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from firmware_bridge.recording.log import read_log, write_log

tensordict = pytest.importorskip("tensordict")


def test_a_tensordict_loads_every_array_of_a_recording(drive: Path) -> None:
    loaded = tensordict.TensorDict.load(drive)
    log = read_log(drive)
    assert loaded.batch_size == (60,) and set(loaded.keys()) == set(log.arrays)
    for name, array in log.arrays.items():
        tensor = loaded[name].numpy()
        assert np.array_equal(tensor.astype(array.dtype), array, equal_nan=array.dtype.kind == "f"), name


def test_a_tensordict_loads_a_log_of_no_ticks(tmp_path: Path) -> None:
    write_log(tmp_path / "a.tdz", {"time": np.zeros(0)}, {})
    assert tensordict.TensorDict.load(tmp_path / "a.tdz")["position"].shape == (0, 14)
