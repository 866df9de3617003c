# Thousands of children: every line must be the same whoever looks.
set -u
sum=0; for i in $(seq 1 700); do sum=$((sum + $(echo "$i") )); done; echo "substitutions: $sum"
total=0; for i in $(seq 1 500); do (exit $((i % 50))); total=$((total + $?)); done; echo "subshells: $total"
bad=0; for i in $(seq 1 300); do /bin/true || bad=$((bad + 1)); done; echo "programs: $bad"
echo "pipes: $(for i in $(seq 1 150); do echo "$i" | cat | tr 0-9 a-j; done | cksum)"
codes=0; for turn in $(seq 1 20); do pids=(); for i in $(seq 1 20); do (sleep 0.01; exit "$i") & pids+=($!); done; for pid in "${pids[@]}"; do wait "$pid"; codes=$((codes + $?)); done; done; echo "jobs: $codes"
traps=0; trap 'traps=$((traps + 1))' USR1; for i in $(seq 1 50); do kill -USR1 $$; done; echo "traps: $traps"
late=0; for i in $(seq 1 20); do read -r -t 0.02 line < <(sleep 0.2; echo x) && late=$((late + 1)); done; echo "read in time: $late"
chld=0; trap 'chld=1' CHLD; sleep 0.1 & wait $!; echo "wait: $?"; trap - CHLD
echo "xargs: $(seq 1 300 | xargs -n 1 -P 4 echo | sort -n | cksum)"
echo "files: $(f=$(mktemp); for i in $(seq 1 200); do echo "$i" >> "$f"; done; cksum < "$f"; rm -f "$f")"
echo "here: $(for i in $(seq 1 100); do cat <<< "$i"; done | cksum)"
( trap 'echo "ended by: TERM"; exit 0' TERM; kill -TERM $BASHPID; sleep 5 )
timeout 0.2 sleep 10; echo "timeout: $?"
coproc cat; echo hello >&"${COPROC[1]}"; read -r -u "${COPROC[0]}" back; echo "coproc: $back"; kill "$COPROC_PID" 2>/dev/null; wait 2>/dev/null
echo "end: ok"
