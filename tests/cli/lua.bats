#!/usr/bin/env bats
# lua.bats - jobs/slurm/job_submit.lua under a stand-in for Slurm's table: what it says, how long it
# takes, and that nothing of a job's comment reaches a shell.

bats_require_minimum_version 1.5.0

setup() {
    shipped=$PWD/jobs/slurm/job_submit.lua
    luas=()
    for l in lua5.1 lua5.4; do command -v $l >/dev/null && luas+=($l); done
    [ "${#luas[@]}" -gt 0 ] || skip "neither lua5.1 nor lua5.4 is installed"
    matrix=$BATS_FILE_TMPDIR/matrix.json
    cd "$BATS_TEST_TMPDIR" || exit 1
    export RAILGAUGE_MATRIX=$matrix RAILGAUGE
    RAILGAUGE=$(command -v railgauge)
    # Slurm's side of it; a lua program for each test goes on from here.
    cat >slurm.lua <<'END'
slurm = { SUCCESS = 0, ERROR = -1, said = {} }
function slurm.log_user(...) slurm.said[#slurm.said + 1] = string.format(...) end -- as Slurm's does
function submit(desc)
    desc.min_nodes = desc.min_nodes or 16
    slurm.said = {}
    assert(slurm_job_submit(desc, {}, 1000) == slurm.SUCCESS)
    return table.concat(slurm.said, "\n")
end
assert(dofile(os.getenv("SCRIPT")) == slurm.SUCCESS)
END
    # A busy machine may take more than the half second of a question that nobody waits for longer.
    script=$PWD/patient.lua
    sed 's/^    timeout = 0.5,/    timeout = 60,/' "$shipped" >"$script"
    grep -q '^    timeout = 60,' "$script"
    export SCRIPT=$script
}

# A matrix of 2 racks of 18 hosts, once.
setup_file() {
    railgauge run --transport sim --no-plots --fabric gb200-nvl72 --racks 2 --op pair_latency,pair_bw -e 64M \
        --epochs 1 -o "$BATS_FILE_TMPDIR/c" >"$BATS_FILE_TMPDIR/log" 2>&1 || { cat "$BATS_FILE_TMPDIR/log"; return 1; }
    cp "$BATS_FILE_TMPDIR/c/matrix.json" "$BATS_FILE_TMPDIR/matrix.json"
}

each_lua() { # PROGRAM: run by every lua that there is
    { cat slurm.lua; echo "$1"; } >test.lua
    for l in "${luas[@]}"; do
        run timeout 60 "$l" test.lua
        [ "$status" -eq 0 ] || { echo "$l: $output"; return 1; }
        said=$output
        [ -z "${2-}" ] || [[ $output == *"$2"* ]] || { echo "$l: $output"; return 1; }
    done
}

# A railgauge that notes each question before it answers.
noting() {
    printf '#!/bin/sh\necho asked >>%q\nexec %q "$@"\n' "$PWD/asked" "$RAILGAUGE" >noting
    chmod +x noting
    RAILGAUGE=$PWD/noting
}

@test "the user is told which segment is wide enough, and it is set where the site wants that" {
    each_lua 'print(submit { comment = "railgauge: all_to_all 64M groups of 32" })' \
        'with --segment=8; scattered nodes take '
    [[ $said != *"so it is set"* ]]
    sed 's/^    set = false,/    set = true,/' "$script" >set.lua
    SCRIPT=set.lua each_lua '
        local desc = { comment = "railgauge: all_to_all 64M groups of 32", segment_size = 65534 }
        print(submit(desc), desc.segment_size)
        assert(desc.segment_size == 8)
        desc.segment_size = 4 -- as the user said
        assert(submit(desc) == "" and desc.segment_size == 4)' 'so it is set'
}

@test "other jobs are left alone and nobody is asked" {
    noting
    each_lua '
        for _, desc in ipairs { {}, { comment = "" }, { comment = "all_gather 1M" },
            { comment = "railgauge:" }, { comment = "railgauge: all_gather 1M", min_nodes = 1 },
            { comment = "railgauge: all_gather 1M", min_nodes = 4294967294 },
            { comment = "railgauge: " .. ("all_gather 1M;"):rep(100) } } do
            assert(submit(desc) == "")
        end
        assert(slurm_job_modify({}, {}, {}, 0) == slurm.SUCCESS)'
    [ ! -e asked ]
    # These are asked about and have nothing to say: spreading costs nothing, no such job, no such room.
    each_lua '
        assert(submit { comment = "railgauge: all_gather 1M groups of 4" } == "")
        assert(submit { comment = "railgauge: model=none" } == "")
        assert(submit { comment = "railgauge: all_gather 1M", min_nodes = 500 } == "")'
    [ "$(wc -l <asked)" -eq $((3 * ${#luas[@]})) ]
}

@test "nothing of a comment reaches a shell" {
    noting
    cat >hostile.lua <<'END'
for _, text in ipairs {
    "x;$(touch owned)", "`touch owned`", "' ; touch owned ; '", "\" ; touch owned ; \"", "a\ntouch owned",
    "all_gather 1M'; touch owned; '", "\\'; touch owned #", "$IFS", "a\0b", "a|touch owned", "a&touch owned",
    "a>owned", "\27[2J", "all_gather 1M\r", "model=../../etc/passwd", "%s%s%n", "~root", "*", "\255\254" } do
    assert(submit { comment = "railgauge: " .. text } == "")
    assert(submit { comment = "railgauge: all_gather 1M", min_nodes = text } == "")
    assert(submit { comment = text, name = text } == "")
end
END
    each_lua "$(cat hostile.lua)"
    [ ! -e owned ]
    [ ! -e asked ]
    # A dash or an unknown word in front is no option of railgauge either.
    each_lua 'assert(submit { comment = "railgauge: --help" } == "")'
}

@test "warm answers take less than 10 ms, cold ones one question; a new matrix is asked again" {
    noting
    matrix=$PWD/m.json
    cp "$RAILGAUGE_MATRIX" "$matrix"
    sed 's/^    look = 10,/    look = 0,/' "$script" >often.lua # the matrix' time at every job
    for s in "$script" often.lua; do
        rm -f asked
        SCRIPT=$s RAILGAUGE_MATRIX=$matrix each_lua '
            local function now() -- of the day, in seconds
                local pipe = io.popen("date +%s.%N")
                local t = pipe:read("*l")
                pipe:close()
                return tonumber(t)
            end
            local desc = { comment = "railgauge: model=llama3.1-8b layout=tp=4,dp=auto" }
            local from = now()
            local said = submit(desc)
            local cold = now() - from
            from = os.clock() -- what this process computes
            for _ = 1, 100 do assert(submit(desc) == said) end
            local warm = (os.clock() - from) / 100
            print(string.format("%s: cold %.1f ms, warm %.3f ms", _VERSION, 1e3 * cold, 1e3 * warm))
            assert(warm < 0.01)'
        [ "$(wc -l <asked)" -eq "${#luas[@]}" ]
        echo "# $s: $said" >&3
    done
    rm -f asked
    SCRIPT=often.lua RAILGAUGE_MATRIX=$matrix each_lua '
        os.execute("touch \"$RAILGAUGE_MATRIX\"")
        local desc = { comment = "railgauge: all_gather 1M" }
        submit(desc)
        submit(desc)
        os.execute("touch -d @1000000000 \"$RAILGAUGE_MATRIX\"")
        submit(desc)
        os.execute("touch -d @1000000001 \"$RAILGAUGE_MATRIX\"")
        submit(desc)'
    [ "$(wc -l <asked)" -eq $((3 * ${#luas[@]})) ]
}

@test "what is missing, broken or hangs lets the job through" {
    program='assert(submit { comment = "railgauge: all_to_all 64M groups of 32" } == "")'
    RAILGAUGE_MATRIX=/nowhere/m.json each_lua "$program"
    RAILGAUGE=/nowhere/railgauge each_lua "$program"
    echo '{' >broken.json
    RAILGAUGE_MATRIX=broken.json each_lua "$program"
    printf '#!/bin/sh\necho nonsense; printf "a\\tb\\tc\\n\\n1e999\\t0\\t\\n"\n' >nonsense
    printf '#!/bin/sh\nexec sleep 60\n' >hangs
    chmod +x nonsense hangs
    RAILGAUGE=$PWD/nonsense each_lua "$program"
    from=$SECONDS
    SCRIPT=$shipped RAILGAUGE=$PWD/hangs each_lua "$program"
    [ $((SECONDS - from)) -lt 20 ]
    each_lua 'slurm.log_user = function() error("no") end
        assert(slurm_job_submit({ comment = "railgauge: all_to_all 64M groups of 32", min_nodes = 16 }, {}, 0) == 0)'
}
