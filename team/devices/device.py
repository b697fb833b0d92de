"""What a device is to the rest of the house, in one screenful."""

from typing import Protocol

from protocol.messages import DeviceInfo


class Device(Protocol):
    """Something that one agent owns and one judge measures on."""

    @property
    def id(self) -> str:
        """GPU UUID, or ``cpu:0`` for a core set."""
        ...

    @property
    def cores(self) -> tuple[int, ...]:
        """CPU cores of this device's: a judge compiles on all of them."""
        ...

    @property
    def kernel_cores(self) -> tuple[int, ...]:
        """CPU cores that a runner may use."""
        ...

    def info(self) -> DeviceInfo:
        """What it is; detected, nothing looked up in a table."""
        ...

    def confine(self) -> None:
        """Keep the calling process and what it starts on this device: for an agent."""
        ...

    def pin(self) -> None:
        """Bind the calling process to the judge's part of this device."""
        ...
