"""How a Python process enters the native runner's sandbox. Imported by processes that then run foreign code."""

import ctypes


def enter(
    library: str, keep_uid: bool, readable: list[str], writable: list[str], starts: bool, address_space: int = 0
) -> str:
    """Apply every layer that the machine permits; their names, separated by spaces.

    ``starts``: the process may start others, as a compiler must. ``address_space`` in bytes, 0 for no limit.
    """
    native = ctypes.CDLL(library)
    native.kernelteam_seal.argtypes = [
        ctypes.c_int,
        ctypes.c_uint64,
        ctypes.c_char_p,
        ctypes.c_char_p,
        ctypes.c_int,
        ctypes.c_char_p,
        ctypes.c_uint64,
    ]
    layers = ctypes.create_string_buffer(256)
    lists = (":".join(paths).encode() for paths in (readable, writable))
    native.kernelteam_seal(int(keep_uid), address_space, *lists, int(starts), layers, len(layers))
    return layers.value.decode()
