"""A BNO055's registers over its UART (data sheet BST-BNO055-DS000, 4.7).

A read is `AA 01 address length`, a write `AA 00 address length data`. The answer is `BB length data`, or
`EE code`, where code 01 says that a write was done. There is no checksum.
"""

from __future__ import annotations

from time import monotonic, sleep

from firmware_bridge.robot.imu.sample import ImuInvalidError, ImuSilentError
from firmware_bridge.wire.port import SerialPort
from hardware.errors import ImuError

BAUD = 115_200
"""Speed of the chip's UART [1/s]; it has no other."""
START, DATA, RESPONSE = 0xAA, 0xBB, 0xEE
WRITE, READ = 0x00, 0x01
DONE, OVERRUN = 0x01, 0x07
CODES = {
    0x02: "read failed",
    0x03: "write failed",
    0x04: "no such address",
    0x05: "register cannot be written now",
    0x06: "wrong start byte",
    OVERRUN: "bus overrun",
    0x08: "too long",
    0x09: "too short",
    0x0A: "a byte came too late",
}
ANSWER_S = 0.02
"""Longest wait for an answer [s]. The longest, 22 bytes, takes 2.3 ms with its request; a USB adapter may
keep bytes back for 16 ms."""
TRIES = 3
"""How often something is asked. A chip busy with its filter answers `bus overrun` and means: ask again."""
RETRY_S = 0.002
"""Wait before the next try [s]."""


class UartLink:
    """A `Link` over a UART.

    Args:
        port: the serial port, at `BAUD`.
        name: what messages call it.
    """

    def __init__(self, port: SerialPort, name: str) -> None:
        self._port, self.name = port, name

    def read(self, address: int, length: int) -> bytes:
        """See `Link.read`.

        Raises:
            ImuSilentError: nothing came, three times.
            ImuInvalidError: the last of three answers was an error, or none that the protocol knows.
            PortError: the port is gone.
        """
        return self._ask(bytes((START, READ, address, length)), bytes((DATA, length)), length)

    def write(self, address: int, value: int) -> None:
        """See `Link.write`; raises what `read` does."""
        self._ask(bytes((START, WRITE, address, 1, value)), bytes((RESPONSE, DONE)), 0)

    def close(self) -> None:
        """Give the port back."""
        self._port.close()

    def _ask(self, request: bytes, head: bytes, length: int) -> bytes:
        """Return the data after the head of the answer to a request."""
        reply = b""
        for _ in range(TRIES):
            reply = self._exchange(request, head, length)
            if reply[:2] == head and len(reply) == 2 + length:
                return reply[2:]
            sleep(RETRY_S)
        raise self._failure(request, reply)

    def _exchange(self, request: bytes, head: bytes, length: int) -> bytes:
        self._port.flush_input()
        self._port.write(request)
        deadline = monotonic() + ANSWER_S
        reply = self._port.read(2, deadline)
        # An error is no longer than the head.
        return reply + self._port.read(2 + length - len(reply), deadline) if reply[:2] == head else reply

    def _failure(self, request: bytes, reply: bytes) -> ImuError:
        if not reply:
            return ImuSilentError(
                f"the BNO055 on {self.name} does not answer; check its supply and cable, that RX and TX are "
                "crossed, and that PS1 is high and PS0 low, which makes it speak over a UART"
            )
        if reply[0] == RESPONSE and len(reply) == 2 and reply[1] in CODES:
            what = f"answers {request.hex(' ')} with error {reply[1]:#04x} ({CODES[reply[1]]})"
        else:
            what = f"answers {request.hex(' ')} with {reply.hex(' ')}, which is no answer"
        return ImuInvalidError(f"the BNO055 on {self.name} {what}, {TRIES} times in a row; check its cable")


def open_uart(path: str) -> UartLink:
    """Return the link over a serial port.

    Raises:
        PortError: the port is absent, forbidden or in use.
    """
    return UartLink(SerialPort(path, BAUD), path)
