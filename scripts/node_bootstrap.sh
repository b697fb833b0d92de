#!/usr/bin/env bash
# Make a bare Ubuntu or Debian machine a node of Kernel Team: compilers, a virtual environment, this checkout in it.
# cluster.yaml runs it on every node; run it by hand on a workstation if you like. Running it again changes nothing.
#
#   scripts/node_bootstrap.sh head      no GPU is asked for
#   scripts/node_bootstrap.sh worker    an NVIDIA driver and nvcc must be there
#
# KERNELTEAM_VENV (default ~/kernelteam-venv) and KERNELTEAM_ENV (default ~/kernelteam.env) move what it makes.
set -euo pipefail

role="${1:-}"
if [[ "$role" != head && "$role" != worker ]]; then
    echo "usage: $0 head|worker" >&2
    exit 2
fi

checkout="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"
venv="${KERNELTEAM_VENV:-$HOME/kernelteam-venv}"
env_file="${KERNELTEAM_ENV:-$HOME/kernelteam.env}"
cuda=/usr/local/cuda/bin

fail() {
    echo "node_bootstrap: $1" >&2
    exit 1
}

as_root() {
    if [[ "$(id -u)" == 0 ]]; then "$@"; else sudo "$@"; fi
}

install_packages() {
    # A fresh cloud machine updates itself in the background and holds the lock for minutes.
    local apt=(apt-get -o DPkg::Lock::Timeout=600 -y -qq)
    as_root "${apt[@]}" update
    as_root env DEBIAN_FRONTEND=noninteractive "${apt[@]}" install \
        bubblewrap g++ git python3-dev python3-venv rsync tmux
}

check_python() {
    python3 -c 'import sys; sys.exit(sys.version_info < (3, 11))' ||
        fail "$(python3 --version) is too old: take an image with Python 3.11 or newer, such as Ubuntu 24.04"
}

check_gpu() {
    PATH="$cuda:$PATH"
    command -v nvidia-smi >/dev/null || fail "no NVIDIA driver: take an image that has it, such as AWS's DLAMI"
    nvidia-smi --query-gpu=index,name,driver_version --format=csv,noheader || fail "the NVIDIA driver does not answer"
    command -v nvcc >/dev/null || fail "no nvcc on the PATH or in $cuda: install the CUDA toolkit"
    nvcc --version | tail -n 2 | head -n 1
}

install_kernelteam() {
    [[ -x "$venv/bin/python" ]] || python3 -m venv "$venv"
    "$venv/bin/pip" install --quiet --upgrade pip
    "$venv/bin/pip" install --quiet -c "$checkout/constraints.txt" -e "$checkout[cluster]"
}

write_environment() {
    echo "export PATH=\"$venv/bin:$cuda:\$PATH\"" >"$env_file"
    local line=". $env_file"
    touch "$HOME/.bashrc"
    grep -qxF "$line" "$HOME/.bashrc" || echo "$line" >>"$HOME/.bashrc"
}

install_packages
check_python
if [[ "$role" == worker ]]; then check_gpu; fi
install_kernelteam
write_environment
"$venv/bin/kernelteam" --help >/dev/null || fail "kernelteam is installed but does not start"
echo "node_bootstrap: this machine is ready as $role"
