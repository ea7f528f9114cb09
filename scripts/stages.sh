# For ./test and scripts/check-all: runs stages one after the other, times them, and adds up what
# they found. A failed stage does not stop the next one.

if [[ -t 1 && -z ${NO_COLOR:-} && ${TERM:-dumb} != dumb ]]; then
    bold=$'\e[1m' red=$'\e[31m' green=$'\e[32m' plain=$'\e[0m'
else
    bold='' red='' green='' plain=''
    export NO_COLOR=1
fi

summary=()
failed_stages=0
last_status=0
passed=0 failed=0 skipped=0
all_started=$SECONDS

minutes() { printf '%d min %02d s' $(($1 / 60)) $(($1 % 60)); }

# stage NAME COMMAND...: output is shown as it comes on a terminal, else only if the command fails.
stage() {
    local name=$1 started=$SECONDS status=0
    shift
    echo "${bold}== $name${plain}"
    "$@" || status=$?
    local took=$((SECONDS - started))
    last_status=$status
    if ((status == 0)); then
        summary+=("$(printf '%-24s %14s   %sok%s' "$name" "$(minutes $took)" "$green" "$plain")")
    else
        summary+=("$(printf '%-24s %14s   %sFAILED%s' "$name" "$(minutes $took)" "$red" "$plain")")
        failed_stages=$((failed_stages + 1))
    fi
    return 0
}

# logged LOG COMMAND...
logged() {
    local log=$1 status=0
    shift
    mkdir -p "$(dirname "$log")"
    if [[ -t 1 ]]; then
        "$@" 2>&1 | tee "$log"
        return "${PIPESTATUS[0]}"
    fi
    "$@" >"$log" 2>&1 || status=$?
    if ((status != 0)); then
        echo "failed: $*; the end of $log:"
        grep -nE 'error:|FAILED|CMake Error' "$log" | head -n 20 || true
        tail -n 60 "$log"
    fi
    return $status
}

build_preset() {
    local preset=$1
    logged "build/$preset/configure.log" cmake --preset "$preset" &&
        logged "build/$preset/build.log" cmake --build --preset "$preset"
}

test_preset() {
    local preset=$1 status=0 report=build/$1/report.xml log=build/$1/test.log
    rm -f "$report"
    shift
    if [[ -t 1 ]]; then
        ctest --preset "$preset" -j "$(nproc)" --progress "$@" 2>&1 | tee "$log" || status=${PIPESTATUS[0]}
    else
        ctest --preset "$preset" -j "$(nproc)" "$@" >"$log" 2>&1 || status=$?
        if ((status != 0)); then
            # What failed, with its output, which CTest prints between the lines that count.
            grep -vE '^ *[0-9]+/[0-9]+ Test +#.* Passed +|^ +Start +[0-9]+:' "$log" | tail -n 400 || true
        else
            grep -E 'tests passed' "$log" || true
        fi
    fi
    if [[ -f $report ]]; then
        local counts
        counts=$(scripts/count-tests "$report")
        read -r p f s <<<"$counts"
        passed=$((passed + p)) failed=$((failed + f)) skipped=$((skipped + s))
    else
        failed=$((failed + 1))
    fi
    return "$status"
}

# preset_stage PRESET [CTEST OPTIONS...]: builds and tests one preset.
preset_stage() {
    local preset=$1
    stage "$preset: build" build_preset "$preset"
    if ((last_status == 0)); then
        stage "$preset: tests" test_preset "$@"
    fi
}

finish() {
    echo
    echo "${bold}== summary${plain}"
    printf '%s\n' "${summary[@]}"
    printf '%-24s %14s\n' all "$(minutes $((SECONDS - all_started)))"
    echo
    if ((skipped > 0)); then echo "$skipped skipped"; fi
    # A stage that never came to its tests must not look like success.
    if ((failed_stages > 0 && failed == 0)); then failed=$failed_stages; fi
    local total=$((passed + failed))
    if ((total > 0)); then
        echo "$((100 * passed / total))% tests passed, $failed tests failed out of $total"
    fi
    echo "$passed passed, $failed failed"
    if ((failed_stages > 0 || failed > 0)); then exit 1; fi
}
