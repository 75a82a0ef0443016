import threading

import pytest
import torch

from microduck.env.torch_threads import on_one_thread


@pytest.fixture
def three_threads():
    before = torch.get_num_threads()
    torch.set_num_threads(3)
    yield
    torch.set_num_threads(before)


def test_one_thread_within_and_as_many_as_before_afterwards_even_after_an_error(three_threads):
    @on_one_thread
    def fail():
        assert torch.get_num_threads() == 1
        raise KeyError

    with pytest.raises(KeyError):
        fail()
    assert torch.get_num_threads() == 3


def test_a_call_within_another_leaves_the_outer_one_on_one_thread(three_threads):
    inner = on_one_thread(torch.get_num_threads)
    outer = on_one_thread(lambda: (inner(), torch.get_num_threads()))
    assert outer.__wrapped__() == (1, 3)
    assert outer() == (1, 1)
    assert torch.get_num_threads() == 3


def test_steps_that_overlap_give_the_threads_back(three_threads):
    inside, go_on, left = threading.Event(), threading.Event(), []

    @on_one_thread
    def slow():
        inside.set()
        go_on.wait(10)

    @on_one_thread
    def quick():
        pass

    def other():
        torch.set_num_threads(3)
        slow()
        left.append(torch.get_num_threads())

    thread = threading.Thread(target=other)
    thread.start()
    inside.wait(10)
    quick()
    assert torch.get_num_threads() == 3
    go_on.set()
    thread.join()
    assert left == [3]
