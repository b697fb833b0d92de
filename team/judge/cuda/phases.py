"""nvcc's own steps for one source and one architecture, with the two that do not need each other side by side. Trusted.

nvcc reads a source twice, for the device and for the host, one after the other; together they are most of a build. The
steps are those that ``nvcc --dryrun`` tells, word for word, but for three things: the host's half runs beside the
device's, the two share a module's name that is made here rather than by one half for the other, and each half leaves
its own list of the files that it read. Whatever does not look as expected is left to nvcc.
"""

import hashlib
import re
import shlex
from collections.abc import Mapping

DEPENDENCIES = "../deps"  # beginning of the names of the lists of files read, seen from the sources' folder
_SAID = "#$ "
_VARIABLE = re.compile(r"(\w+)=(.*)")
_QUIET_VARIABLES = ("INCLUDES", "SYSTEM_INCLUDES", "LIBRARIES")  # pieces of the commands, already put in
_DEVICE = ("device preprocess", "cicc", "ptxas", "fatbinary")
_HOST = ("host preprocess", "cudafe++")
_ENDING = {"compile", "nvlink", "fatbinary"}  # of what comes after both
_GENERATES = re.compile(r'--gen_module_id_file --module_id_file_name "([^"]+)"')


def side_by_side(told: str, files: Mapping[str, str]) -> str | None:
    """A shell script that does what ``nvcc --dryrun`` told for ``files``, or None when nvcc should do it itself."""
    variables, commands = _read(told)
    kinds = [_kind(command) for command in commands]
    halves = len(_DEVICE) + len(_HOST)
    if sorted(kinds[:halves]) != sorted((*_DEVICE, *_HOST)) or not set(kinds[halves:]) <= _ENDING or not kinds[halves:]:
        return None
    device, host = ([commands[kinds.index(kind)] for kind in half] for half in (_DEVICE, _HOST))
    named = _GENERATES.search(host[-1])
    if named is None:
        return None
    name = shlex.quote(_module_name(files))
    lines = [f"export {key}={shlex.quote(value)}" for key, value in variables.items()]
    lines += [f"printf %s {name} > {shlex.quote(named[1])}", "("]
    lines += [_listed(command, "host").replace("--gen_module_id_file ", "") + " || exit" for command in host]
    lines += [") > ../host.log 2>&1 &", "host=$!", "("]
    lines += [_listed(command, "device") + " || exit" for command in device]
    lines += [") > ../device.log 2>&1", "device=$?", "wait $host", "host=$?"]
    lines += ["if [ $host -ne 0 ]; then cat ../host.log; exit $host; fi", "cat ../host.log ../device.log"]
    lines += ["if [ $device -ne 0 ]; then exit $device; fi"]
    lines += [command + " || exit" for command in commands[halves:]]
    return "\n".join([*lines, ""])


def _read(told: str) -> tuple[dict[str, str], list[str]]:
    """The variables that nvcc sets for its steps, and the steps that make files."""
    variables: dict[str, str] = {}
    commands: list[str] = []
    for line in told.splitlines():
        said = line.removeprefix(_SAID).strip()
        if not line.startswith(_SAID) or said.startswith(("rm ", "-- ")):
            continue
        variable = _VARIABLE.fullmatch(said)
        if variable is None:
            commands.append(said)
        elif variable[1] not in _QUIET_VARIABLES:
            variables[variable[1]] = variable[2]
    return variables, commands


def _kind(command: str) -> str:
    """What a step is."""
    program = command.split(maxsplit=1)[0].strip('"').rsplit("/", 1)[-1]
    if program in ("gcc", "g++", "cc", "c++", "clang", "clang++"):
        if " -E " not in command:
            return "compile"
        return "device preprocess" if "-D__CUDA_ARCH__=" in command else "host preprocess"
    return program if program in ("cudafe++", "cicc", "ptxas", "fatbinary", "nvlink") else "other"


def _listed(command: str, half: str) -> str:
    """A step that preprocesses, told to list the files that it reads."""
    return f"{command} -MMD -MF {DEPENDENCIES}.{half}" if " -E " in command else command


def _module_name(files: Mapping[str, str]) -> str:
    """The name that both halves give to what is local to the source: letters and digits, its own for every source."""
    digest = hashlib.sha256(repr(sorted(files.items())).encode()).hexdigest()
    return f"_{digest[:8]}_{digest[8:24]}"
