# shellcheck shell=bash
# Changes that can be taken back. Of every file that install.sh writes, the state folder keeps what was there
# before (original) and what was put there (written), each under the file's own path. Every step is ordered so
# that after a kill or a power cut at any point a new run finds its way.
#
# Uses ROOT, DRY_RUN, SCRATCH, say and die of install.sh.

readonly STATE=/var/lib/microduck/install
readonly BEGIN="# >>> microduck: from here on written by install.sh" END="# <<< microduck"
readonly CONSOLE="console=(serial0|ttyAMA0|ttyS0)(,[^ ]*)?"
# Editors on other systems may have given the lines another end.
readonly BLOCK="/^$BEGIN\r\?\$/,/^$END\r\?\$/"

# change PATH FILTER...: let PATH hold what FILTER makes, on its standard input, of what is others' there.
change() {
    local path=$1 now="$ROOT$1" base="$SCRATCH/base" new="$SCRATCH/new"
    shift
    before "$path" >"$base"
    "$@" <"$base" >"$new"
    if is_same "$new" "$now" && { [[ -e $ROOT$STATE/written$path ]] || is_same "$base" "$now"; }; then
        say "  $path is so already."
        return
    fi
    say "  $path changes:"
    diff -u --label before --label after "$([[ -e $now ]] && echo "$now" || echo /dev/null)" "$new" |
        sed 's/^/    /' || true
    set_aside "$path"
    [[ $DRY_RUN == no ]] || return 0
    if [[ -e $ROOT$STATE/original$path || (-e $now && ! -e $ROOT$STATE/written$path) ]]; then
        keep "$base" "original$path" "$now"
    fi
    keep "$new" "written$path"
    lay "$new" "$path"
    CHANGED+=("$path")
}

# take_back PATH: undo `change PATH`.
take_back() {
    local path=$1 now="$ROOT$1" original="$ROOT$STATE/original$1"
    before "$path" >"$SCRATCH/base"
    set_aside "$path"
    if [[ -e $original ]]; then
        say "  $path becomes what it was."
    else
        say "  $path is removed."
    fi
    [[ $DRY_RUN == no ]] || return 0
    if [[ -e $original ]]; then lay "$SCRATCH/base" "$path" "$original"; else rm -f -- "$now"; fi
    # In this order: a file without an original would be taken for one that is ours alone.
    rm -- "$ROOT$STATE/written$path"
    rm -f -- "$original"
    CHANGED+=("$path")
}

# before PATH: print what PATH held before us, with what others have changed since.
before() {
    local now="$ROOT$1" original="$ROOT$STATE/original$1" written="$ROOT$STATE/written$1"
    [[ ! -L $now ]] || die "$now is a link; put a file in its place, then run this again"
    check_markers "$1"
    if [[ -e $written ]] && { [[ ! -e $now ]] || is_same "$now" "$written" || is_same "$now" "$original"; }; then
        print_if_there "$original"
    elif [[ $1 == */config.txt ]]; then
        print_if_there "$now" | sed "$BLOCK d"
    elif [[ ! -e $written ]]; then
        print_if_there "$now"
    elif [[ $1 == */cmdline.txt ]]; then
        with_console "$1"
    else
        print_if_there "$original"
    fi
}

# check_markers PATH: refuse a file in which the end of our lines cannot be told.
check_markers() {
    local marks
    [[ $1 == */config.txt && -e $ROOT$1 ]] || return 0
    marks=$(sed -n "s/^$BEGIN\r\?\$/begin/p; s/^$END\r\?\$/end/p" "$ROOT$1")
    [[ -z $marks || $marks == $'begin\nend' ]] ||
        die "$ROOT$1 must hold the lines '$BEGIN' and '$END' once each, in this order, or neither;" \
            "remove what is left of them and ours in between, then run this again"
}

# with_console PATH: print the kernel's command line with the words that we took from it, each where it stood.
with_console() {
    local line word next="" i
    local -a words=() first=()
    read -ra words <"$ROOT$1" || true
    read -ra first <"$ROOT$STATE/original$1" || true
    line=" ${words[*]} "
    for ((i = ${#first[@]} - 1; i >= 0; i--)); do
        word=${first[i]}
        if [[ $word =~ ^$CONSOLE$ && $line != *" $word "* ]]; then
            if [[ $line == *" $next "* ]]; then
                line=${line/" $next "/" $word $next "}
            else
                line+="$word "
            fi
        fi
        next=$word
    done
    line=${line# }
    say "${line% }"
    tail -n +2 -- "$ROOT$1"
}

# ours PATH FILE: print the part of FILE, a state of PATH, that belongs to install.sh.
ours() {
    case $1 in
        */config.txt) sed -n "$BLOCK p" "$2" ;;
        */cmdline.txt) ;;
        *) cat -- "$2" ;;
    esac
}

# set_aside PATH: if somebody has edited what is ours in PATH, keep a copy under a name that no program reads.
set_aside() {
    local now="$ROOT$1" number=1 state
    [[ -e $now && -e $ROOT$STATE/written$1 ]] || return 0
    for state in written original; do
        if is_same <(ours "$1" "$now") <(print_if_there "$ROOT$STATE/$state$1" | ours "$1" -); then return; fi
    done
    while [[ -e $now.kept-$number || -L $now.kept-$number ]]; do ((++number)); done
    say "  $1 was edited where it is ours; the edited one is kept as $1.kept-$number."
    [[ $DRY_RUN == yes ]] || cp -p -- "$now" "$now.kept-$number"
}

is_same() { cmp -s -- "$1" "$2"; }

print_if_there() { if [[ -e $1 ]]; then cat -- "$1"; fi; }

# keep FILE NAME [LIKE]: copy FILE to NAME in the state folder in one step, with mode and owner of LIKE.
keep() {
    local target="$ROOT$STATE/$2" coming="$ROOT$STATE/coming"
    mkdir -p -- "${target%/*}"
    if [[ $# -gt 2 && -e $3 ]]; then cp -p -- "$3" "$coming"; else rm -f -- "$coming"; fi
    cat -- "$1" >"$coming"
    sync -- "$coming"
    mv -- "$coming" "$target"
}

# lay FILE PATH [LIKE]: give PATH the content of FILE in one step, with mode and owner of what is there, or LIKE.
lay() {
    local target="$ROOT$2"
    mkdir -p -- "${target%/*}"
    COMING=$(mktemp -- "$target.XXXXXX")
    if [[ -e $target ]]; then
        cp -p -- "$target" "$COMING"
    elif [[ -e ${3:-} ]]; then
        cp -p -- "$3" "$COMING"
    else
        chmod 644 "$COMING"
    fi
    cat -- "$1" >"$COMING"
    sync -- "$COMING"
    mv -- "$COMING" "$target"
    COMING=""
}

# link PATH TARGET: make PATH a link to TARGET; the state folder remembers it.
link() {
    local now="$ROOT$1"
    if [[ -L $now && $(readlink "$now") == "$2" ]]; then
        say "  $1 is so already."
        return
    fi
    [[ ! -e $now && ! -L $now ]] || die "$now is there and is not ours; move it away, then run this again"
    say "  $1 becomes a link to $2."
    [[ $DRY_RUN == no ]] || return 0
    mkdir -p -- "${now%/*}"
    remember links "$1 $2"
    ln -s -- "$2" "$now"
}

# unlink_ours: undo every `link`.
unlink_ours() {
    local path target
    while read -r path target; do
        [[ -L $ROOT$path && $(readlink "$ROOT$path") == "$target" ]] || continue
        say "  the link $path is removed."
        [[ $DRY_RUN == yes ]] || rm -- "$ROOT$path"
    done < <(remembered links)
}

# remember LIST LINE, remembered LIST: lines that uninstalling needs.
remember() {
    mkdir -p -- "$ROOT$STATE"
    grep -qxF -- "$2" "$ROOT$STATE/$1" 2>/dev/null || printf '%s\n' "$2" >>"$ROOT$STATE/$1"
}

remembered() { if [[ -e $ROOT$STATE/$1 ]]; then cat "$ROOT$STATE/$1"; fi; }

# written_paths: the paths that `change` has written.
written_paths() {
    local top="$ROOT$STATE/written"
    [[ ! -d $top ]] || find "$top" -type f -printf '/%P\n' | sort
}
