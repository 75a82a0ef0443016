"""The shipped policy, through `duck run`, real servo bytes and a real serial port, on a simulated body."""


def test_the_shipped_skill_walks_a_virtual_duck_without_falling(driven):
    walk, told = driven("--command", "0.2", "0", "0")
    assert not walk["fell"]
    assert walk["seconds"] > 4.8  # where it began to sit is told to a tenth or two
    assert walk["path_m"] > 0.5  # half of what was commanded
    assert told["mode"] == "stopped"
    assert told["policy_ticks"] >= 240
