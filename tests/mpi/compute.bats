#!/usr/bin/env bats
# compute.bats - --compute on the stand-ins, whose rates are set here: they come back, and rule predictions.

bats_require_minimum_version 1.5.0
load helper

setup() {
    need_stand_ins "name NVIDIA H200" "hbm_Bps 4e7" "host_Bps 1e7"
    export FAKE_GEMM=bf16=1e10,fp8=2e10,mxfp8=3e10,nvfp4=4e10,half=256
    small=(--gemm bf16:1024x512x256,bf16:512x512x512,fp8:1024x512x256 --device-bytes 1M --time-cap 4s --half-width 20%)
}

compute() { # N ARG...
    local n=$1
    shift
    ranks "$n" "$probe" probe --compute "${small[@]}" "$@" 2>log
}

# value ENDPOINT KIND [DTYPE M] - the figure
value() {
    awk -F'\t' -v e="$1" -v k="$2" -v d="${3:--}" -v m="${4:-0}" '$1 == e && $5 == k && $6 == d && $7 == m { print $11 }' \
        compute.tsv
}

close_to() { # GOT WANT SHARE
    awk -v a="$1" -v b="$2" -v s="$3" 'BEGIN { d = a / b - 1; exit !(a != "" && d < s && d > -s) }' ||
        { echo "$1 is not $2"; return 1; }
}

@test "each GPU's rates are the stand-in's, products too" {
    run -0 compute 3
    for e in 0 1 2; do
        close_to "$(value $e hbm_copy)" 4e7 0.05
        close_to "$(value $e h2d)" 1e7 0.05
        close_to "$(value $e d2h_both)" 1e7 0.05
        close_to "$(value $e gemm bf16 1024)" 5e9 0.05
        close_to "$(value $e gemm bf16 512)" 6.667e9 0.05
        close_to "$(value $e gemm fp8 1024)" 1e10 0.05
    done
    [[ $output == '3 GPUs alone: NVIDIA H200'* ]]
    head -2 compute.tsv | tail -1 | cut -c3- | jq -e .gpu
}

@test "a slow GPU is found and named, the medians are the others'" {
    FAKE_FAULT=slowgpu:1:1:1.3 run -0 railgauge run --transport copy --ranks 3 --no-verdict --no-plots -o c --epochs 1 -e 4K \
        --pair-bytes 4K --op pair_bw "${small[@]}"
    jq -r '.findings[] | select(.kind == "slow_gpu").text' c/matrix.json |
        grep -q 'endpoint 1 (.*:1 0000:43:00.0): matrix products at 0.7.* of the median of 3 GPUs'
    jq -e '.compute.gemm | length == 3 and all(.devices == 2) and
        ([.[] | select(.dtype == "bf16" and .m == 512).flops][0] / 6.667e9 - 1 | fabs) < 0.05' c/matrix.json
    jq -e '.predictions | length > 0 and all(.compute_rate.source | contains("measured GEMM"))' c/prediction.json
}

@test "two ranks on one GPU: one of them measures" {
    printf 'devices 1\n' >>gpus.txt
    run -78 compute 2
    grep -q 'would use the same GPU' log
    run -0 compute 2 --share-gpu
    [ "$(awk -F'\t' '!/^#/ && $1 != "endpoint" { print $1 }' compute.tsv | sort -u)" = 0 ]
}

@test "what is not there is told in its rows: no fp8 on sm 80, no cuBLASLt" {
    printf 'sm 80\n' >>gpus.txt
    run -0 compute 1
    [[ $output == *'fp8 products'*'not measured: libcublasLt.so.13 has no fp8 product'* ]]
    close_to "$(value 0 gemm bf16 1024)" 5e9 0.05
    mkdir lib
    cp "$build/fake/libcuda.so.1" lib
    : >lib/libcublasLt.so.13
    : >lib/libcublasLt.so.12
    LD_LIBRARY_PATH=$PWD/lib run -0 compute 1
    [[ $output == *'bf16 products'*'not measured: no cuBLASLt: '*libcublasLt.so.13*'file too short'* ]]
    [ "$(value 0 gemm bf16 1024)" = nan ]
}

@test "products with scales of blocks: where the GPU and the library have them, into matrix and prediction" {
    scaled=bf16:1024x512x256,mxfp8:1024x512x256,nvfp4:1024x512x256
    run -0 compute 1 --gemm $scaled
    [[ $output == *'mxfp8 products'*'not measured: libcublasLt.so.13 has no mxfp8 product'*CUBLAS_STATUS_NOT_SUPPORTED* ]]
    [ "$(value 0 gemm nvfp4 1024)" = nan ]
    printf 'sm 100\nname NVIDIA GB200\n' >>gpus.txt
    FAKE_GEMM=version=120605 run -0 compute 1 --gemm $scaled
    [[ $output == *'nvfp4 products'*'not measured: no nvfp4 products in libcublasLt.so.13, 12.6.5: scales of'* ]]
    run -0 railgauge run --transport copy --ranks 2 --no-verdict --no-plots -o c --epochs 1 -e 4K --pair-bytes 4K --op pair_bw \
        "${small[@]}" --gemm $scaled
    jq -e '[.compute.gemm[] | select(.m == 1024) | {(.dtype): (.flops / 1e10 * 2)}] | add |
        (.bf16 - 1 | fabs) < 0.05 and (.mxfp8 - 3 | fabs) < 0.15 and (.nvfp4 - 4 | fabs) < 0.2' c/matrix.json
    for dtype in mxfp8 nvfp4; do
        run -0 --separate-stderr railgauge predict c/matrix.json --model llama3.1-8b --dtype $dtype --layout dp_shard=2 --json
        jq -e --arg d "measured GEMM: $dtype products" '.compute_rate.source | startswith($d)' <<<"$output"
    done
    FAKE_FAULT=scales:0 run -2 compute 1 --gemm $scaled
    grep -q 'the mxfp8 product 144x160x256 of this GPU is wrong: row 0, column 0 is ' log
}

@test "wrong products end it with exit 2, a GPU without memory with its words" {
    FAKE_FAULT=product:1 run -2 compute 2
    grep -q 'rank 1.*the bf16 product 144x160x256 of this GPU is wrong: row 0, column 5 is 77' log
    [ ! -e compute.tsv ]
    printf 'room 2000000\n' >>gpus.txt
    run -74 compute 2
    grep -q 'CUDA_ERROR_OUT_OF_MEMORY' log
}

@test "the shapes of a model; a dry run; wrong words" {
    run -0 --separate-stderr railgauge run --transport copy --ranks 2 --dry-run "${small[@]}"
    [[ $output == *' of measuring'*'16 figures of each GPU alone, about '* ]]
    run -0 --separate-stderr railgauge run --transport copy --ranks 2 --dry-run --no-compute
    [[ $output != *'of each GPU alone'* ]]
    run -0 ranks 1 "$probe" probe --compute --model llama3.1-8b --dry-run
    [[ $output == *' figures of each GPU alone, about '*' s'* ]]
    run -64 --separate-stderr ranks 1 "$probe" probe --compute --model no-such --dry-run
    [[ $stderr == *no-such* ]]
    run -64 --separate-stderr ranks 1 "$probe" probe --compute --gemm fp4:1x2x3
    [[ $stderr == *'--gemm: "fp4" is not bf16, fp8, mxfp8 or nvfp4'* ]]
}
