#!/bin/sh
# check-library.sh LIBRARY [GLIBC]: whether a built libswipr.so may be preloaded into anything. It
# exports nothing but swipr_* and the functions that it stands in front of and passes on (see
# ARCHITECTURE.md), needs nothing but the C library's family, binds at load time, cannot be unloaded,
# has nothing for tests in it, takes next to nothing of every thread's stack, is small when stripped,
# and, if a version is named, needs no newer glibc than that, no libgcc_s and no loader, and has a
# version of its own in its SONAME.
set -eu
library=$1
glibc=${2-}
limit=$((2344 * 1024))
tls_limit=64
fail() { echo "check-library.sh: $*" >&2; exit 1; }

exports=$(readelf --dyn-syms -W "$library" | awk '$7 != "UND" && $5 != "LOCAL" && NR > 3 {sub(/@.*/, "", $8); print $8}' | grep -v '^$' | sort -u)
echo "$exports" | grep -qx swipr_start || fail "swipr_start is not exported"
passed_on='__register_frame|__deregister_frame|__register_frame_info|__deregister_frame_info'
passed_on="$passed_on|__register_atfork|sigaltstack|capset|prctl|unshare|setns|syscall|pthread_create|setrlimit(64)?|prlimit(64)?|_exit|_Exit|exit|quick_exit|fork"
passed_on="$passed_on|set(uid|gid|groups|euid|egid|reuid|regid|resuid|resgid)|chroot"
foreign=$(echo "$exports" | grep -v '^swipr_' | grep -Evx "$passed_on" || true)
[ -z "$foreign" ] || fail "exports what is not ours:
$foreign"

needed=$(readelf -dW "$library" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p')
for name in $needed; do
  case $name in
    libc.so.6 | libgcc_s.so.1 | ld-linux-x86-64.so.2 | ld-linux-aarch64.so.1 | libpthread.so.0 | libdl.so.2) ;;
    *) fail "needs $name" ;;
  esac
done

if [ -n "$glibc" ]; then
  newest=$(readelf -VW "$library" | grep -o 'GLIBC_[0-9.]*' | sed 's/GLIBC_//' | sort -V | tail -1)
  [ "$(printf '%s\n' "$newest" "$glibc" | sort -V | tail -1)" = "$glibc" ] || fail "needs glibc $newest; $glibc is the newest that it may"
  case $needed in *libgcc_s* | *ld-linux*) fail "needs $(echo $needed): musl's loader refuses more than the C library" ;; esac
  soname=$(readelf -dW "$library" | sed -n 's/.*(SONAME).*\[\(.*\)\]/\1/p')
  case $soname in libswipr.so.[0-9]*) ;; *) fail "is called $soname, without a version" ;; esac
  [ "$library" -ef "$(dirname "$library")/$soname" ] || fail "is not beside itself under its SONAME, $soname"
fi

flags=$(readelf -dW "$library" | grep -E 'FLAGS')
echo "$flags" | grep -q NOW || fail "is not bound at load time"
echo "$flags" | grep -q NODELETE || fail "can be unloaded"

! grep -q SWIPR_TEST_FAULT "$library" || fail "has the faults in it that only tests may ask for"

# Static TLS: of a preloaded library it is taken from the stack of every thread of the host.
tls=$(readelf -lW "$library" | awk '$1 == "TLS" {print $6}')
[ "$((${tls:-0}))" -le "$tls_limit" ] || fail "takes $((tls)) bytes of every thread's stack (static TLS); $tls_limit are allowed:
$(readelf -sW "$library" | awk '$4 == "TLS" {print $3, $8}')"

copy=$(mktemp)
trap 'rm -f "$copy"' EXIT
strip -o "$copy" "$library"
size=$(wc -c <"$copy")
[ "$size" -le "$limit" ] || fail "is $size bytes when stripped; $limit are allowed"
echo "$library: $(echo "$exports" | wc -l) exports, needs $(echo $needed | tr ' ' ','), $size bytes when stripped, $((${tls:-0})) bytes of each thread's stack"
