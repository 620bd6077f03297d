#!/usr/bin/env bats
# session.bats - another user's links and folders: what they lead to is neither emptied nor executed.

bats_require_minimum_version 1.5.0
load helper

small=(--op pair_bw -b 8 -e 1K -n 2)
stranger=(setpriv --reuid=65534 --regid=65534 --clear-groups)

setup() {
    need_mpi
    cd "$BATS_TEST_TMPDIR" || return 1
    export RAILGAUGE_STATE=$PWD/state
    unset "${!SLURM_@}"
}

# A base that everybody may write to, and the victim that only we may.
scene() {
    mkdir -p victim tmp
    echo kept >victim/file
    chmod 700 victim
    chmod 1777 tmp
    chmod a+x . .. ../..
}

# plant USER... - what Open MPI 4 would take for the session folders of the processes that start next.
plant() {
    # shellcheck disable=SC2016 # perl's
    "$@" perl -MSys::Hostname -e '
        my ($tmp, $victim, $uid) = @ARGV;
        my $host = (split /\./, hostname())[0];
        mkdir "$tmp/ompi.$host.$uid"; chmod 0777, "$tmp/ompi.$host.$uid";
        symlink $victim, "$tmp/ompi.$host.$uid/pid.$_" for $$ .. $$ + 3000' "$PWD/tmp" "$PWD/victim" "$(id -u)"
}

unharmed() {
    [ "$(cat victim/file)" = kept ]
    [ "$(find tmp -type l | wc -l)" -eq 3001 ]
}

@test "links planted where mpirun would have its session folder lead nowhere" {
    scene
    if [ "$(id -u)" -eq 0 ]; then plant "${stranger[@]}"; else plant env; fi
    export TMPDIR=$PWD/tmp
    run railgauge check -t mpi --ranks 2 "${small[@]}" --limit 20s
    echo "$output"
    [ "$status" -le 2 ]
    unharmed
    run -0 railgauge run -t mpi --ranks 2 "${small[@]}" --no-plots -o c
    unharmed
    run -0 railgauge run -t mpi --launch "mpirun --oversubscribe -n 2" "${small[@]}" --no-plots -o d
    unharmed
    run -0 railgauge run -t mpi --hosts "localhost:2" "${small[@]}" --no-plots -o e
    unharmed
}

@test "mpirun and its ranks have folders that only we may enter, and no other launcher is told of them" {
    scene
    printf '#!/bin/sh\necho "$TMPDIR" >>%s/told\nstat -c "%%a %%u" "$TMPDIR" >>%s/told\nexit 78\n' "$PWD" "$PWD" >mpirun
    sed 's/told/other/' mpirun >starter
    chmod +x mpirun starter
    export TMPDIR=$PWD/tmp
    run -78 railgauge run -t mpi --launch ./mpirun -o c
    [[ $(head -n 1 told) =~ /railgauge-[A-Za-z0-9]{6}$ ]]
    [ "$(sed -n 2p told)" = "700 $(id -u)" ]
    [ ! -e "$(head -n 1 told)" ]
    run -78 railgauge run -t mpi --launch ./starter -o d
    [ "$(head -n 1 other)" = "$TMPDIR" ]
}

@test "a runtime folder of another user, or one that others may change, is not taken" {
    printf '#!/bin/sh\necho "$TMPDIR" >told\necho "$OMPI_MCA_btl_vader_backing_directory" >shared\nexit 78\n' >mpirun
    chmod +x mpirun
    mkdir mine open strange
    chmod 0777 open
    PATH=$PWD:$PATH
    XDG_RUNTIME_DIR=$PWD/mine run -78 railgauge run -t mpi --ranks 2 -o c
    [[ $(<told) == "$PWD/mine/railgauge-"* ]]
    [[ $(<shared) == /dev/shm/railgauge-* ]]
    # Nothing is left of either.
    [ ! -e "$(<shared)" ]
    [ -z "$(ls mine)" ]
    XDG_RUNTIME_DIR=$PWD/open run -78 railgauge run -t mpi --ranks 2 -o d
    [[ $(<told) != "$PWD/open/"* ]]
    [ "$(id -u)" -eq 0 ] || return 0
    chown 65534 strange
    XDG_RUNTIME_DIR=$PWD/strange run -78 railgauge run -t mpi --ranks 2 -o e
    [[ $(<told) != "$PWD/strange/"* ]]
}

@test "--resume takes no command from campaign.json, shows it, and goes on with one that is typed" {
    printf '#!/bin/sh\ntouch %s/ran\nexec mpirun --oversubscribe -n 2 "$@"\n' "$PWD" >start
    chmod +x start
    run -0 railgauge run -t mpi --launch "$PWD/start" "${small[@]}" --no-retest --no-plots -o c # as many points each time
    jq -e --arg start "$PWD/start" '.options.launch == [$start]' c/campaign.json
    cp c/points.tsv whole.tsv
    sed -i '$d' c/points.tsv
    rm ran
    run -64 railgauge run --resume -o c --no-plots
    [[ $output == *"c was begun with --launch \"$PWD/start\", and no command is taken from a file: add it to --resume again"* ]]
    run -64 railgauge run --resume -o c --no-plots --dry-run
    [ ! -e ran ]
    run -0 railgauge run --resume -o c --no-plots --launch "mpirun --oversubscribe -n 2"
    [ ! -e ran ]
    [ "$(wc -l <c/points.tsv)" -eq "$(wc -l <whole.tsv)" ]
    sed -i '$d' c/points.tsv
    run -0 railgauge run --resume -o c --no-plots --launch "$PWD/start"
    [ -e ran ]
    # Nor does the file say that its owner is trusted.
    jq '.options["trust-owner"] = [null] | .options["dry-run"] = [null]' c/campaign.json >x && cp x c/campaign.json
    sed -i '$d' c/points.tsv
    run -0 railgauge run --resume -o c --no-plots --launch "$PWD/start"
    [ "$(wc -l <c/points.tsv)" -eq "$(wc -l <whole.tsv)" ]
}

@test "folders, links and files of another user are refused by run, resume and check, root's too" {
    [ "$(id -u)" -eq 0 ] || skip "giving files away needs root"
    sim=(--fabric hgx-h100 --racks 1 --op pairs -b 1M -e 1M)
    refused() { # NAME WORDS...
        run -78 railgauge "${@:2}"
        [[ $output == *"$1 belongs to user 65534, not to user 0, who runs this; --trust-owner uses it all the same" ]]
    }
    railgauge run "${sim[@]}" --no-plots
    dir=$(readlink last)
    run -0 railgauge run --resume --no-plots
    for name in last "$dir" "$dir/campaign.json" "$dir/points.tsv"; do
        chown -h 65534 "$name"
        refused "${name/$dir/last}" run --resume # by the name that it was reached by
        [ "$name" = last ] || refused "$name" run --resume -o "$dir"
        run -0 railgauge run --resume --trust-owner --no-plots
        chown -h 0 "$name"
    done
    mkdir theirs
    chown 65534 theirs
    refused theirs run "${sim[@]}" -o theirs
    refused theirs check "${sim[@]}" -o theirs
    refused theirs check "${sim[@]}" --state theirs
    [ -z "$(ls theirs)" ]
    ln -s "$PWD/state" link
    chown -h 65534 link
    refused link run "${sim[@]}" -o link
    run -0 railgauge check "${sim[@]}" --state theirs --trust-owner -q
    [ -n "$(ls theirs)" ]
    # Another user may go on with what root left: root could change it anyway.
    chmod a+x . .. ../..
    chmod -R a+rwX "$dir"
    run "${stranger[@]}" env HOME="$PWD" railgauge run --resume -o "$dir" --no-plots
    [[ $output != *"belongs to user"* ]]
}
