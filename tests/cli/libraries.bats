#!/usr/bin/env bats
# libraries.bats - railgauge discover --libraries: what is found where, by what, and what helps where it is not.  The
# stand-ins of tests/fake lie in environments of Python that are laid out here; the last one is a wheel of PyPI.

bats_require_minimum_version 1.5.0

setup() {
    cd "$BATS_TEST_TMPDIR" || return 1
    fake=$(realpath "${RG_BUILD:-build}")/fake
    railgauge=$(command -v railgauge)
    loader=$(readelf -l "$railgauge" | sed -n 's/.*interpreter: \(.*\)]/\1/p')
    unset VIRTUAL_ENV CONDA_PREFIX PYTHONPATH RAILGAUGE_NCCL RAILGAUGE_CUBLASLT RAILGAUGE_CUDA
    home=$HOME
    export HOME=$PWD
}

# bare [NAME=VALUE...] - as JSON where the loader knows the driver alone: without its cache, and no other library on its path.
bare() {
    mkdir -p driver
    cp "$fake/libcuda.so.1" driver
    env LD_LIBRARY_PATH="$PWD/driver" PATH="$PWD/bin:${railgauge%/*}:/usr/bin:/bin" "$@" \
        "$loader" --inhibit-cache "$railgauge" discover --libraries --json >out.json
}

# row LIBRARY KEY - of out.json
row() { jq -r --arg l "$1" ".libraries[] | select(.library == \$l) | .$2" out.json; }

# put FILE LIBRARY - a copy of a stand-in, since the loader takes links to one file for one library
put() { mkdir -p "${1%/*}" && cp "$fake/$2" "$1"; }

@test "each library with version, file, what found it and what it is for" {
    run -0 railgauge discover --libraries
    [[ ${lines[0]} == library*version*'found by'*file ]]
    [[ $output == *'NCCL '*'2.28.9'*'collectives over NCCL'*'the loader'*"$fake/libnccl.so.2"* ]]
    [[ $output == *'cuBLASLt '*'13.1.0'*'matrix products'*libcublasLt.so.13* ]]
    [[ $output == *'CUDA driver '*'CUDA 13.0'*libcuda.so.1* ]]
    railgauge discover --libraries --json >out.json
    [ "$(jq -r '.format, .version, (.libraries | length)' out.json | paste -sd' ')" = 'railgauge-libraries 1 8' ]
    [ "$(row NCCL there) $(row NCCL found_by)" = 'true the loader' ]
    if command -v railgauge-probe; then [[ $(row MPI version) == *[0-9].[0-9]* ]]; fi
}

@test "what is missing says why, where it was looked for, and what helps" {
    mkdir -p venv/lib/python3.12/site-packages
    bare VIRTUAL_ENV="$PWD/venv" PATH="$PWD/none"
    [ "$(row NCCL there)" = false ]
    [[ $(row NCCL why) == "NCCL cannot be loaded: libnccl.so.2: cannot open shared object file: No such file or directory; nor in nvidia/nccl/lib, torch/lib of $PWD/venv/lib/python3.12/site-packages; set RAILGAUGE_NCCL=FILE" ]]
    [[ $(row NCCL helps) == *'pip install nvidia-nccl-cu13'* ]]
    [[ $(row cuBLASLt why) == *'libcublasLt.so.13: '*'libcublasLt.so.12: '*'RAILGAUGE_CUBLASLT=FILE' ]]
    [[ $(row gnuplot why) == 'gnuplot is not in PATH' ]]
    bare RAILGAUGE_NCCL=/no/such.so PATH="$PWD/none"
    [ "$(row NCCL why)" = 'NCCL cannot be loaded: /no/such.so: cannot open shared object file: No such file or directory' ]
}

@test "wheels in a venv, the torch of the python3 on PATH, a conda environment, a file that is named" {
    put conda/lib/libnccl.so.2 libnccl.so.2
    bare CONDA_PREFIX="$PWD/conda" PATH="$PWD/none"
    [ "$(row NCCL there)" = false ] # lib of what is no conda environment is the loader's business
    mkdir conda/conda-meta
    bare CONDA_PREFIX="$PWD/conda" PATH="$PWD/none"
    [ "$(row NCCL file) $(row NCCL found_by)" = "$PWD/conda/lib/libnccl.so.2 conda" ]
    put base/lib/python3.12/site-packages/torch/lib/libnccl.so.2 libnccl.so.2
    mkdir -p base/bin bin
    cp /bin/true base/bin/python3.12
    ln -s ../base/bin/python3.12 bin/python3
    bare CONDA_PREFIX="$PWD/conda"
    [ "$(row NCCL file)" = "$PWD/base/lib/python3.12/site-packages/torch/lib/libnccl.so.2" ]
    put venv/lib/python3.12/site-packages/nvidia/nccl/lib/libnccl.so.2 libnccl.so.2
    echo "home = $PWD/base/bin" >venv/pyvenv.cfg
    bare VIRTUAL_ENV="$PWD/venv" FAKE_NCCL_VERSION=22005
    [ "$(row NCCL file)" = "$PWD/venv/lib/python3.12/site-packages/nvidia/nccl/lib/libnccl.so.2" ]
    [ "$(row NCCL version) $(row NCCL found_by)" = "2.20.5 Python's packages" ]
    put mine/nccl.so libnccl.so.2
    bare VIRTUAL_ENV="$PWD/venv" RAILGAUGE_NCCL="$PWD/mine/nccl.so"
    [ "$(row NCCL file) $(row NCCL found_by)" = "$PWD/mine/nccl.so RAILGAUGE_NCCL" ]
}

@test "cuBLASLt: the driver's CUDA or an older one" {
    site=$PWD/venv/lib/python3.12/site-packages/nvidia
    put "$site/cu13/lib/libcublasLt.so.13" libcublasLt.so.13
    put "$site/cublas/lib/libcublasLt.so.12" libcublasLt.so.13
    export VIRTUAL_ENV=$PWD/venv
    bare
    [ "$(row cuBLASLt file)" = "$site/cu13/lib/libcublasLt.so.13" ]
    echo 'driver 12040' >gpus.txt
    bare FAKE_GPU="$PWD/gpus.txt" FAKE_GEMM=version=120605
    [ "$(row 'CUDA driver' version)" = 'CUDA 12.4' ]
    [ "$(row cuBLASLt file) $(row cuBLASLt version)" = "$site/cublas/lib/libcublasLt.so.12 12.6.5" ]
    bare FAKE_GPU="$PWD/gpus.txt" RAILGAUGE_CUBLASLT="$site/cu13/lib/libcublasLt.so.13"
    [ "$(row cuBLASLt why)" = "$site/cu13/lib/libcublasLt.so.13 is cuBLASLt 13.1; the driver offers CUDA 12.4 and runs those up to 12" ]
    rm "$site/cu13/lib/libcublasLt.so.13"
    bare
    [ "$(row cuBLASLt file)" = "$site/cublas/lib/libcublasLt.so.12" ]
}

@test "it looks at this machine alone" {
    run -64 railgauge discover --libraries --fabric hgx-h100
    [[ $output == *'--libraries looks at this machine alone, and writes no file'* ]]
    run -64 railgauge discover --libraries -o x.json
}

@test "NCCL's own wheel, in a venv whose python3 is on PATH (176 MB)" {
    [ "$(uname -m)" = x86_64 ] || skip "no wheel of this version for $(uname -m)"
    python=$(HOME=$home "$BATS_TEST_DIRNAME/../venv.sh" nccl nvidia-nccl-cu12==2.20.5 2>why) || skip "$(tail -1 why)"
    bare PATH="${python%/*}:/usr/bin:/bin"
    [ "$(row NCCL version) $(row NCCL found_by)" = "2.20.5 Python's packages" ]
    [[ $(row NCCL file) == "${python%/bin/*}"/lib*/python3*/site-packages/nvidia/nccl/lib/libnccl.so.2 ]]
}
