# For batch scripts: reports the job when the script fails, and before its time limit.
#
#   #SBATCH --signal=B:USR1@60
#   source /opt/torchtriage/report-on-exit.sh
#   torchtriage_wait srun torchrun … train.py
#
# torchtriage_wait lets the shell hear signals while the command runs; without it, bash hears them when it is over.

torchtriage_home=$(dirname "${BASH_SOURCE[0]}")

torchtriage_report() {
    python3 "$torchtriage_home/torchtriage_slurm.py" job "$SLURM_JOB_ID" --state "$@" || true
}

torchtriage_wait() {
    "$@" &
    torchtriage_pid=$!
    wait "$torchtriage_pid"
    torchtriage_status=$?
    while kill -0 "$torchtriage_pid" 2> /dev/null; do # a signal came in between
        wait "$torchtriage_pid"
        torchtriage_status=$?
    done
    return "$torchtriage_status"
}

torchtriage_exit() {
    torchtriage_status=$?
    trap - EXIT
    if [ "$torchtriage_status" -ne 0 ] && [ -z "$torchtriage_told" ]; then
        torchtriage_report FAILED --job-exit-code "$torchtriage_status"
    fi
    exit "$torchtriage_status"
}

torchtriage_told=
trap torchtriage_exit EXIT
trap 'exit 143' TERM
trap 'torchtriage_told=yes; torchtriage_report TIMEOUT' USR1
