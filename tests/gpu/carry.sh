#!/bin/bash
# carry.sh - what a bare GPU machine lacks (Open MPI, hwloc, jansson ...) in one folder, from this one.
#
#   tests/gpu/carry.sh [FOLDER]        default build/carry; some 30 MB
#
# Copy the tree with build/railgauge, build/railgauge-probe, build/tests/gpu/loop and this folder there
# (a C library as new as this machine's is enough) and start tests/gpu/run.sh, which reads FOLDER/env.sh.
# Of the libraries only those that the other machine has not are put before its own.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

to=${1:-build/carry}
path() { ompi_info --path "$1" --parsable | cut -d: -f3; }
command -v ompi_info >/dev/null || { echo "carry.sh: Open MPI is not installed here" >&2; exit 69; }
prefix=$(path prefix) plugins=$(path pkglibdir) data=$(path pkgdatadir)
rm -rf "$to"
mkdir -p "$to/bin" "$to/all" "$to/${plugins#"$prefix"/}" "$to/${data#"$prefix"/}"

cp -L "$(command -v mpirun)" "$(command -v orted)" "$to/bin"
cp -rL "$data/." "$to/${data#"$prefix"/}"
# Networks that a single machine does not use bring the most libraries.
for f in "$plugins"/*.so; do
    case ${f##*/} in
    *ucx* | *ofi* | *psm* | *openib* | *usnic* | *monitoring* | *ucc* | *hcoll* | *portals* | *gpfs*) ;;
    *) cp -L "$f" "$to/${plugins#"$prefix"/}" ;;
    esac
done
pmix=$(ldconfig -p | awk '$1 == "libpmix.so.2" {print $NF; exit}')
pmix=$(dirname "$(readlink -f "${pmix:-/none/none}")")
[ ! -d "$pmix/pmix" ] || { mkdir -p "$to/pmix/lib" && cp -rL "$pmix/pmix" "$to/pmix/lib/"; }

# Every library that these need, but for those of the C library, which must be the machine's own.
needs() { # FILE... - what the loader finds for them; a text file needs nothing
    LD_LIBRARY_PATH="$plugins/..:$pmix" ldd "$@" 2>/dev/null | awk '$2 == "=>" && $3 ~ /^\// {print $3}' |
        sort -u | grep -Ev '/(libc|libm|libpthread|libdl|librt|libutil|libresolv|libanl|libstdc\+\+|libgcc_s)\.so'
}
mapfile -t files < <(find "$to" build/railgauge build/railgauge-probe build/tests/gpu/loop -type f)
while read -r library; do
    cp -L "$library" "$to/all/"
done < <(needs "${files[@]}")
cp -L "$plugins"/../libmca_common_{sm,ompio}.so* "$to/all/" 2>/dev/null || true

cat >"$to/env.sh" <<'END'
# Read by tests/gpu/run.sh: the carried programs and libraries, and NVIDIA's where PyTorch keeps them.
carry=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
mkdir -p "$carry/lib"
for f in "$carry"/all/*; do
    ldconfig -p | grep -q "^[[:space:]]*${f##*/} " || ln -sf "$f" "$carry/lib/"
done
there() { ldconfig -p | grep -q "^[[:space:]]*$1 "; }
nvidia=
for library in libnccl.so.2 libcublasLt.so.13; do
    there "$library" && continue
    found=$(find /usr /opt /root /home -name "$library" -print -quit 2>/dev/null)
    [ -z "$found" ] || nvidia=$nvidia:$(dirname "$found")
done
export PATH=$carry/bin:$PATH LD_LIBRARY_PATH=$carry/lib$nvidia${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
export OPAL_PREFIX=$carry OMPI_MCA_plm=isolated PMIX_MCA_pcompress_base_silence_warning=1
[ ! -d "$carry/pmix" ] || export PMIX_INSTALL_PREFIX=$carry/pmix
END
du -sh "$to"
