#!/bin/bash
# nccl_formats.sh - the NCCL that is installed still writes the lines that topo/nccl_log reads: their
# formats stand in the library.  RAILGAUGE_NCCL names another one.
cd "$(dirname "$0")/../.." || exit 1

library=${RAILGAUGE_NCCL:-}
for dir in "${CUDA_HOME:-/usr/local/cuda}/lib64" /usr/lib/x86_64-linux-gnu /usr/lib/aarch64-linux-gnu; do
    [[ -n $library ]] || [[ ! -e $dir/libnccl.so.2 ]] || library=$dir/libnccl.so.2
done
if [[ -z $library ]]; then
    echo "1..0 # SKIP no libnccl.so.2 here"
    exit 0
fi

# One a line: beginnings and ends of formats that NCCL 2.26 to 2.30 have in common.
formats() {
    cat <<'LIST'
NCCL version 
Using network %s
NET/IB : Using
NET/Socket : Using
GPU Direct RDMA %s for HCA %d
commId 0x%llx - Init START
commId 0x%llx - Init COMPLETE
nNodes %d localRanks %d localRank %d MNNVL %d
MNNVL %d cliqueId
NVLS multicast support is %savailable
NVLS comm %p headRank
Pattern %d, crossNic %d, nChannels %d, bw %f/%f, type %s/%s
Ring %02d : %d -> %d -> %d
 coll channels, 
via P2P/%s%s%s
via P2P/direct pointer
via P2P/indirect/%d
via SHM/
[send] via NET/%s/%d
[receive] via NET/%s/%d
via COLLNET/%s/%d
Bytes -> Algo %s proto %s channel{Lo..Hi}={%d..%d}
 set by environment to 
LIST
}

there=$(LC_ALL=C grep -aoFf <(formats) "$library" | sort -u)
n=0
failed=0
while IFS= read -r format; do
    n=$((n + 1))
    if grep -qxF -- "$format" <<<"$there"; then
        echo "ok $n - $format"
    else
        echo "not ok $n - $format is not in $library"
        failed=1
    fi
done < <(formats)
echo "1..$n"
exit $failed
