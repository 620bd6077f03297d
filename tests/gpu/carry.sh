#!/bin/bash
# carry.sh - all that a bare machine with a GPU lacks, in one folder of at most a given size.
#
#   tests/gpu/carry.sh [--most SIZE] [--arch N] [--nccl FILE|none] [FOLDER]
#
# FOLDER (build/carry) gets run.sh, which unpacks the rest and starts tests/gpu/run.sh there; rest.tar.gz:
# the programs, the tables they read, Open MPI with its plugins, and every library these need that
# is not of the C library; libnccl.so.2.gz: NCCL for the one architecture N (90: H100, H200) by
# tests/gpu/cut.c, from FILE or from where python3's packages and the loader have it; sizes.tsv:
# what is in it, packed and unpacked, and what was left out and why.  SIZE is of the folder; the
# default leaves 60M for it and the files of this repository together, which travel beside it.  The other machine needs the NVIDIA driver, bash, coreutils, awk, sed, grep, tar, gzip and a C
# library as new as this machine's.
#
#   cp -r build/carry THERE; ssh THERE carry/run.sh --out results
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

most='' arch=90 nccl='' build=${RG_BUILD:-build} to=''
while [ $# -gt 0 ]; do
    case $1 in
    --most) most=${2:?} && shift ;;
    --arch) arch=${2:?} && shift ;;
    --nccl) nccl=${2:?} && shift ;;
    -*) sed -n '4s/^# *//p' "$0" >&2 && exit 64 ;;
    *) to=$1 ;;
    esac
    shift
done
to=${to:-$build/carry}
stop() { # CODE WORD...
    echo "carry.sh: ${*:2}" >&2
    exit "$1"
}
repository() { # bytes of the files that are no build products
    git ls-files -coz --exclude-standard 2>/dev/null | xargs -0 -r stat -c %s 2>/dev/null | awk '{n += $1} END {print n + 0}'
}
[ -n "$most" ] || most=$(((60 << 20) - $(repository)))
most=$(numfmt --from=iec "${most%B}" 2>/dev/null) || stop 64 "--most is a size such as 60M"
[[ $arch =~ ^[1-9][0-9]{1,2}$ ]] || stop 64 "--arch is a number such as 90"
for f in railgauge railgauge-probe tests/gpu/loop tests/gpu/cut; do
    [ -x "$build/$f" ] || stop 66 "$build/$f is not built"
done
command -v ompi_info >/dev/null || stop 69 "Open MPI is not installed here"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
tree=$work/railgauge mpi=$work/railgauge/carry
rm -rf "$to" && mkdir -p "$to" "$mpi/bin" "$mpi/all" "$tree/build/tests/gpu" "$tree/tests/gpu"
printf 'part\tpacked\tunpacked\twhat\n' >"$to/sizes.tsv"
out() { printf '%s\t0\t0\tleft out: %s\n' "$1" "$2" >>"$to/sizes.tsv"; }

# --- the programs and what they read ---
for f in railgauge railgauge-probe tests/gpu/loop; do
    cp -L "$build/$f" "$tree/build/$f"
    ! command -v strip >/dev/null || strip --strip-debug "$tree/build/$f"
done
if [ -e "$build/librailgauge-nccl.so" ]; then
    cp -L "$build/librailgauge-nccl.so" "$tree/build/"
else
    out librailgauge-nccl.so 'not built'
fi
cp tests/gpu/{run,eight,trays}.sh tests/gpu/job.py "$tree/tests/gpu/"
find topo src/schema jobs \( -name '*.json' -o -name '*.tsv' \) -exec cp --parents -t "$tree" {} +

# --- Open MPI; networks that a single machine does not use bring the most libraries ---
path() { ompi_info --path "$1" --parsable | cut -d: -f3; }
prefix=$(path prefix) plugins=$(path pkglibdir) data=$(path pkgdatadir)
mkdir -p "$mpi/${plugins#"$prefix"/}" "$mpi/${data#"$prefix"/}"
# From Open MPI 5 on PRRTE starts the ranks, before that orted.
for f in mpirun orted prterun prted; do
    ! command -v "$f" >/dev/null || cp -L "$(command -v "$f")" "$mpi/bin/$f"
done
cp -rL "$data/." "$mpi/${data#"$prefix"/}"
prte=${data%/*}/prte
[ ! -d "$prte" ] || cp -rL "$prte" "$mpi/${prte#"$prefix"/}"
for f in "$plugins"/*.so; do
    case ${f##*/} in
    *ucx* | *ofi* | *psm* | *openib* | *usnic* | *monitoring* | *ucc* | *hcoll* | *portals* | *gpfs*)
        out "${f##*/}" 'a network or tool that one machine does not use' ;;
    *) cp -L "$f" "$mpi/${plugins#"$prefix"/}" ;;
    esac
done
pmix=$(ldconfig -p | awk '$1 == "libpmix.so.2" && !n++ {print $NF}')
pmix=$(dirname "$(readlink -f "${pmix:-/none/none}")")
[ ! -d "$pmix/pmix" ] || { mkdir -p "$mpi/pmix/lib" && cp -rL "$pmix/pmix" "$mpi/pmix/lib/"; }

# --- every library that these need, but for the C library's, which must be the machine's own ---
needs() { # FILE... - what the loader finds for them; a text file needs nothing
    LD_LIBRARY_PATH="$plugins/..:$pmix" ldd "$@" 2>/dev/null | awk '$2 == "=>" && $3 ~ /^\// {print $3}' |
        sort -u | grep -Ev '/(libc|libm|libpthread|libdl|librt|libutil|libresolv|libanl|libcuda|libnvidia-ml)\.so'
}
mapfile -t files < <(find "$tree" -type f \( -perm -u+x -o -name '*.so*' \))
while read -r library; do
    cp -L "$library" "$mpi/all/"
done < <(needs "${files[@]}")
cp -L "$plugins"/../libmca_common_{sm,ompio}.so* "$mpi/all/" 2>/dev/null || true

# Read by tests/gpu/run.sh there: the machine's own library goes before one that was carried.
cat >"$mpi/env.sh" <<'END'
carry=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
own() { PATH=$PATH:/sbin:/usr/sbin ldconfig -p 2>/dev/null | grep -q "^[[:space:]]*$1 "; }
mkdir -p "$carry/lib"
for f in "$carry"/all/*; do
    own "${f##*/}" || ln -sf "$f" "$carry/lib/"
done
# NVIDIA's libraries, where the packages of a Python have them.
folders=''
for library in libnccl.so.2 libcublasLt.so.13 libcublasLt.so.12; do
    own "$library" && continue
    found=$(timeout 20 find /usr /opt /root /home -name "$library" -print -quit 2>/dev/null)
    [ -z "$found" ] || folders=$folders:$(dirname "$found")
done
# The carried NCCL is for a machine that has none.
own libnccl.so.2 || [[ $folders == *nccl* ]] || folders=$folders:$carry/nccl
export PATH=$carry/bin:$PATH LD_LIBRARY_PATH=$carry/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}$folders
export OPAL_PREFIX=$carry PMIX_MCA_pcompress_base_silence_warning=1
# No other machine is reached, and ssh need not be there.
if [ -e "$carry/bin/orted" ]; then
    export OMPI_MCA_plm=isolated
else
    export PRTE_PREFIX=$carry PRTE_MCA_plm_ssh_agent=true
fi
[ ! -d "$carry/pmix" ] || export PMIX_INSTALL_PREFIX=$carry/pmix
END
cat >"$to/run.sh" <<'END'
#!/bin/bash
# run.sh - unpack what lies beside this into RAILGAUGE_CARRY (default: a new folder of the temporary ones)
# and start tests/gpu/run.sh there, with these arguments.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
to=${RAILGAUGE_CARRY:-$(mktemp -d)}
words=() && for word in "$@"; do # files and folders are named from where this was called
    [ "${last-}" != --out ] && [ "${last-}" != --page ] || word=$(realpath -m "$word")
    words+=("$word") && last=$word
done
mkdir -p "$to" && tar -xzf "$here/rest.tar.gz" -C "$to"
if [ -e "$here/libnccl.so.2.gz" ]; then
    mkdir -p "$to/railgauge/carry/nccl"
    gzip -dc "$here/libnccl.so.2.gz" | dd of="$to/railgauge/carry/nccl/libnccl.so.2" bs=1M conv=sparse iflag=fullblock status=none
fi
cp "$here/sizes.tsv" "$to/railgauge/carry/"
export RAILGAUGE_DATA=$to/railgauge RG_BUILD=$to/railgauge/build
exec "$to/railgauge/tests/gpu/run.sh" "${words[@]}"
END
chmod +x "$to/run.sh"

# --- packed, and counted ---
bytes() { stat -c %s "$1"; }
inside() { du -sb --apparent-size "$@" | awk '{n += $1} END {print n}'; }
tar --sort=name --owner=0 --group=0 -C "$work" -cf - railgauge | gzip -6 >"$to/rest.tar.gz"
row() { printf '%s\t%s\t%s\t%s\n' "$@" >>"$to/sizes.tsv"; }
row rest.tar.gz "$(bytes "$to/rest.tar.gz")" "$(inside "$tree")" 'the parts below, packed together'
while read -r part what; do
    row "$part" - "$(inside "$tree/$part")" "$what"
done <<END
build the programs
topo tables of GPUs and fabrics
jobs tables of jobs
src/schema schemas
tests the checks
carry/bin mpirun and what it starts
carry/${plugins#"$prefix"/} plugins of Open MPI
carry/all libraries
END
folder() { find "$to" -type f -printf '%s\n' | awk '{n += $1} END {print n + 4096}'; }
[ "$(folder)" -le "$most" ] || stop 65 "without NCCL it is $(folder) bytes already, more than --most $most"

# --- NCCL: whole code of one architecture, else without what it was linked from, else none ---
found() {
    python3 -c 'import importlib.util as u
s = u.find_spec("nvidia.nccl")
print(s.submodule_search_locations[0] + "/lib/libnccl.so.2" if s else "")' 2>/dev/null | grep . ||
        ldconfig -p | awk '$1 == "libnccl.so.2" && !n++ {print $NF}'
}
[ -n "$nccl" ] || nccl=$(found || true)
fits() { [ $(($(folder) + $(bytes "$work/nccl.gz"))) -le "$most" ]; }
pack() { # CUT'S OPTION... - leaves work/nccl.gz and why
    "$build/tests/gpu/cut" "$@" "$arch" "$nccl" "$work/nccl" >"$work/cut.tsv" 2>"$work/why" &&
        gzip -9 -c "$work/nccl" >"$work/nccl.gz"
}
carry_nccl() {
    local how
    [ "$nccl" != none ] || { out libnccl.so.2 'not asked for'; return; }
    [ -r "$nccl" ] || { out libnccl.so.2 "${nccl:-none} found here: pip install nvidia-nccl-cu13, or --nccl FILE"; return; }
    for how in '' --bare; do
        # shellcheck disable=SC2086 # one word or none
        pack $how || { out libnccl.so.2 "$(cat "$work/why")"; return; }
        ! fits || break
        out libnccl.so.2 "sm_$arch${how:+, linked kernels only,} is $(bytes "$work/nccl.gz") bytes packed: too many for --most $most"
    done
    fits || return 0
    mv "$work/nccl.gz" "$to/libnccl.so.2.gz"
    row libnccl.so.2.gz "$(bytes "$to/libnccl.so.2.gz")" "$(du -B1 "$work/nccl" | cut -f1)" "$nccl, sm_$arch${how:+, linked kernels only}"
    awk -F'\t' 'NR > 1 && $5 == "no" {printf "libnccl.so.2: %s of sm_%s\t0\t0\tleft out: %d bytes, another architecture\n", $1, $2, $4}' \
        "$work/cut.tsv" >>"$to/sizes.tsv"
}
carry_nccl
out libcublasLt.so.13 'some hundred MB: products of matrices are not run where the machine has none'
out libcuda.so.1 "the driver's, must be the machine's own"
row all "$(folder)" - "at most $most"
cat "$to/sizes.tsv"
