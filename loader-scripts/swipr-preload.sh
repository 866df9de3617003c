#!/bin/sh
# Starts a program with swipr inside it:
#
#     swipr-preload.sh [--socket PATTERN] [--lib PATH] [--] PROGRAM [ARGUMENT…]
#
# The program keeps this script's process id. Where preloading cannot work (a static
# program, one with raised privileges, another architecture or C library) the loader
# would say nothing or fail in its own words; this script says why, and ends with 126.

set -u

usage() {
    cat <<'END'
usage: swipr-preload.sh [--socket PATTERN] [--lib PATH] [--] PROGRAM [ARGUMENT...]

  --socket PATTERN  where the program's socket will be; {PID}, {UUID}, {HOSTNAME} and
                    {COMM} are filled in (default: /var/run/swipr-pid-{PID}.sock, or, where
                    that cannot be made, in $XDG_RUNTIME_DIR, /tmp/swipr-<uid> or /dev/shm/swipr-<uid>)
  --lib PATH        the library to load (default: libswipr beside this script, in
                    ../target/release, in ../lib, or where a package has it)

exit status: the program's own; 126 when it cannot be preloaded, 127 when there is no
such program, 2 for a wrong command line
END
}

fail() {
    status=$1
    shift
    echo "swipr-preload.sh: $*" >&2
    exit "$status"
}

refuse() {
    fail 126 "cannot profile $program: $*"
}

# --- the command line ---------------------------------------------------------------

lib=
while [ $# -gt 0 ]; do
    case $1 in
        --socket | --lib)
            [ $# -ge 2 ] && [ -n "$2" ] || fail 2 "$1 needs a value"
            if [ "$1" = --lib ]; then
                lib=$2
            else
                SWIPR_SOCKET=$2
                export SWIPR_SOCKET
            fi
            shift 2
            ;;
        --socket=*) SWIPR_SOCKET=${1#*=}; export SWIPR_SOCKET; shift ;;
        --lib=*) lib=${1#*=}; shift ;;
        -h | --help) usage; exit 0 ;;
        --) shift; break ;;
        -*) usage >&2; fail 2 "cannot understand $1" ;;
        *) break ;;
    esac
done
[ $# -gt 0 ] || { usage >&2; exit 2; }

case $(uname -s) in
    Darwin) name=libswipr.dylib variable=DYLD_INSERT_LIBRARIES ;;
    *) name=libswipr.so variable=LD_PRELOAD ;;
esac

if [ -z "$lib" ]; then
    # The script may have been started by a symlink to it: the library is beside the file.
    own=$0 links=0
    while [ -L "$own" ] && [ "$links" -lt 40 ]; do
        link=$(readlink -- "$own") || break
        case $link in
            /*) own=$link ;;
            *) own=$(dirname -- "$own")/$link ;;
        esac
        links=$((links + 1))
    done
    here=$(CDPATH='' cd -- "$(dirname -- "$own")" && pwd -P) || exit 2
    for folder in "$here" "$here/../target/release" "$here/../lib" "$here"/../../lib "$here"/../../lib/*-linux-gnu; do
        if [ -f "$folder/$name" ]; then
            lib=$(CDPATH='' cd -- "$folder" && pwd -P)/$name
            break
        fi
    done
    [ -n "$lib" ] || fail 2 "no $name beside this script, in ../target/release or in ../lib;" \
        "build it (cargo build --release -p libswipr) or name it with --lib"
fi
[ -f "$lib" ] || fail 2 "there is no library $lib"
case $lib in
    /*) ;;
    *) lib=$(pwd -P)/$lib ;;
esac
case $variable$lib in
    LD_PRELOAD*[\ :]*) fail 2 "LD_PRELOAD cannot hold a path with a blank or a colon: $lib" ;;
esac

# find_program NAME: where PATH has it; `command -v` would stop at what the shell knows
find_program() (
    IFS=:
    set -f
    for folder in $PATH; do
        if [ -f "${folder:-.}/$1" ] && [ -x "${folder:-.}/$1" ]; then
            echo "${folder:-.}/$1"
            return 0
        fi
    done
    return 1
)

program=$1
case $program in
    */*) path=$program ;;
    *) path=$(find_program "$program") || fail 127 "there is no program $program" ;;
esac
[ -e "$path" ] || fail 127 "there is no program $program"
[ -f "$path" ] && [ -x "$path" ] || refuse "it is not an executable file"

# --- reading files without tools that may be missing --------------------------------

# bytes FILE OFFSET COUNT: their values, one a line
bytes() {
    od -An -v -tu1 -j "$2" -N "$3" -- "$1" 2>/dev/null | tr -s ' ' '\n' | sed '/^$/d'
}

# number FILE OFFSET COUNT: the number in these bytes, in the byte order of $order
number() {
    list=$(bytes "$1" "$2" "$3")
    value=0
    scale=1
    if [ "$order" = big ]; then
        for byte in $list; do value=$((value * 256 + byte)); done
    else
        for byte in $list; do
            value=$((value + byte * scale))
            scale=$((scale * 256))
        done
    fi
    echo "$value"
}

# magic FILE: its first four bytes in hexadecimal
magic() {
    od -An -v -tx1 -N 4 -- "$1" 2>/dev/null | tr -d ' \n'
}

# read_elf FILE: sets class (1: 32 bit, 2: 64 bit), order, machine
read_elf() {
    class=$(order=little number "$1" 4 1)
    order=little
    [ "$(number "$1" 5 1)" = 2 ] && order=big
    machine=$(number "$1" 18 2)
}

# find_interpreter FILE: sets interpreter to its PT_INTERP, empty when it has none
find_interpreter() {
    interpreter=
    if [ "$class" = 2 ]; then
        table=$(number "$1" 32 8) size=$(number "$1" 54 2) count=$(number "$1" 56 2)
        at=8 length_at=32 width=8
    else
        table=$(number "$1" 28 4) size=$(number "$1" 42 2) count=$(number "$1" 44 2)
        at=4 length_at=16 width=4
    fi
    while [ "$count" -gt 0 ]; do
        if [ "$(number "$1" "$table" 4)" = 3 ]; then
            from=$(number "$1" $((table + at)) $width)
            length=$(number "$1" $((table + length_at)) $width)
            interpreter=$(dd if="$1" bs=1 skip="$from" count=$((length - 1)) 2>/dev/null)
            return
        fi
        table=$((table + size))
        count=$((count - 1))
    done
}

# --- why it might not work ----------------------------------------------------------

# The loader drops LD_PRELOAD where a program gains privileges by being started.
check_privileges() {
    me=$(id -u)
    # -L: what a link points to. The fields are mode, links, owner, group.
    # shellcheck disable=SC2046,SC2012
    set -- "$1" $(ls -ldnL -- "$1" | tr -s ' ' | cut -d ' ' -f 1-4)
    if [ -u "$1" ] && [ "$4" != "$me" ]; then
        refuse "$1 is setuid to user $4: the loader ignores $variable for it" \
            "(start it as that user, or profile what it starts)"
    fi
    if [ -g "$1" ] && [ "$5" != "$(id -g)" ]; then
        refuse "$1 is setgid to group $5: the loader ignores $variable for it" \
            "(start it as that group, or profile what it starts)"
    fi
    if [ "$me" != 0 ] && command -v getcap >/dev/null 2>&1 && [ -n "$(getcap "$1" 2>/dev/null)" ]; then
        refuse "$1 has file capabilities: the loader ignores $variable for it" \
            "(use a copy of it without them)"
    fi
}

machine_name() {
    case $1 in
        3) echo x86 ;;
        40) echo arm ;;
        62) echo x86-64 ;;
        183) echo aarch64 ;;
        243) echo riscv ;;
        *) echo "machine $1" ;;
    esac
}

check_elf() {
    read_elf "$lib"
    lib_class=$class lib_machine=$machine
    read_elf "$1"
    if [ "$class" != "$lib_class" ] || [ "$machine" != "$lib_machine" ]; then
        refuse "$1 is for $(machine_name "$machine") with $((class * 32)) bits, $lib for" \
            "$(machine_name "$lib_machine") with $((lib_class * 32)) (build the library for it)"
    fi
    find_interpreter "$1"
    # A loader started by hand has none itself; it reads the variable for what it starts.
    case ${1##*/} in
        ld-linux*.so* | ld-musl*.so* | ld64.so* | ld.so*) interpreter=${interpreter:-$1} ;;
    esac
    if [ -z "$interpreter" ]; then
        refuse "$1 is static, no loader would read $variable (link it dynamically)"
    fi
    case $interpreter in
        *ld-musl*)
            if grep -q 'libc\.so\.6' "$lib"; then
                refuse "$1 uses musl ($interpreter), $lib was built for glibc"
            fi
            ;;
        *ld-linux* | *ld64*)
            if grep -q 'libc\.musl-' "$lib"; then
                refuse "$1 uses glibc ($interpreter), $lib was built for musl (build it for glibc)"
            fi
            ;;
    esac
}

# check FILE DEPTH: a script is what its interpreter is
check() {
    [ "$2" -le 5 ] || return 0
    check_privileges "$1"
    case $(magic "$1") in
        7f454c46) check_elf "$1" ;;
        2321*) check_script "$1" "$2" ;;
    esac
}

check_script() {
    depth=$2
    first=$(sed -n '1{s/^#![[:space:]]*//;p;q;}' <"$1" 2>/dev/null)
    set -f
    # shellcheck disable=SC2086
    set -- $first
    set +f
    [ $# -gt 0 ] || return 0
    case $1 in
        */env)
            shift
            # env's own options and settings are not what it starts.
            while [ $# -gt 0 ]; do
                case $1 in
                    -* | *=*) shift ;;
                    *) break ;;
                esac
            done
            [ $# -gt 0 ] || return 0
            started=$(find_program "$1") || return 0
            ;;
        *) started=$1 ;;
    esac
    case $started in
        */*) [ -f "$started" ] && check "$started" $((depth + 1)) ;;
    esac
    return 0
}

if [ "$variable" = DYLD_INSERT_LIBRARIES ]; then
    case $path in
        /bin/* | /sbin/* | /usr/bin/* | /usr/sbin/* | /usr/libexec/* | /System/*)
            refuse "macOS ignores $variable for its own programs (use a copy of it, or another build)"
            ;;
    esac
    check_privileges "$path"
    DYLD_INSERT_LIBRARIES=$lib${DYLD_INSERT_LIBRARIES:+:$DYLD_INSERT_LIBRARIES}
    export DYLD_INSERT_LIBRARIES
else
    # Without od nothing can be checked: the program is started as it is.
    if command -v od >/dev/null 2>&1; then
        check "$path" 1
    elif command -v readelf >/dev/null 2>&1; then
        readelf -l "$path" 2>/dev/null | grep -q INTERP || refuse "it seems to be static"
    elif command -v file >/dev/null 2>&1; then
        case $(file -L "$path") in
            *'statically linked'*) refuse "it is static, no loader would read $variable" ;;
        esac
    fi
    LD_PRELOAD=$lib${LD_PRELOAD:+:$LD_PRELOAD}
    export LD_PRELOAD
fi

exec "$@"
