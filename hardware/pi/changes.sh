# shellcheck shell=bash
# Changes that can be taken back. Of every file that install.sh writes, the state folder keeps what was there
# before (original) and what was put there (written), each under the file's own path.
#
# Uses ROOT, DRY_RUN, SCRATCH, say and die of install.sh.

readonly STATE=/var/lib/microduck/install

# change PATH FILTER...: let PATH hold what FILTER makes, on its standard input, of what was there before us.
change() {
    local path=$1 now="$ROOT$1" base="$SCRATCH/base" new="$SCRATCH/new"
    shift
    [[ ! -L $now ]] || die "$now is a link; put a file in its place, then run this again"
    before "$path" "$base"
    "$@" <"$base" >"$new"
    if [[ -e $now ]] && cmp -s "$new" "$now"; then
        say "  $path is so already."
        return
    fi
    say "  $path changes:"
    diff -u --label before --label after "$([[ -e $now ]] && echo "$now" || echo /dev/null)" "$new" |
        sed 's/^/    /' || true
    [[ $DRY_RUN == no ]] || return 0
    if is_ours_alone "$path"; then
        set_aside "$path"
    else
        [[ ! -e $now ]] || keep "$base" "original$path" "$now"
    fi
    keep "$new" "written$path"
    lay "$new" "$path"
    CHANGED+=("$path")
}

# before PATH FILE: put into FILE what PATH held before us, with what others have changed since.
before() {
    local now="$ROOT$1" original="$ROOT$STATE/original$1" written="$ROOT$STATE/written$1"
    if [[ -e $written && ! -e $original ]]; then
        : >"$2"
    elif [[ ! -e $written ]]; then
        cat -- "$([[ -e $now ]] && echo "$now" || echo /dev/null)" >"$2"
    elif [[ ! -e $now ]] || cmp -s "$now" "$written" || cmp -s "$now" "$original"; then
        cat "$original" >"$2"
    else
        without_ours "$1" >"$2" || die "$now was edited where install.sh had changed it;" \
            "compare it with $original, put it right by hand, and remove $written"
    fi
}

# without_ours PATH: print PATH with our change taken out and everybody else's left in.
without_ours() {
    lines_of "$ROOT$1" >"$SCRATCH/theirs"
    lines_of "$ROOT$STATE/written$1" >"$SCRATCH/ours"
    lines_of "$ROOT$STATE/original$1" >"$SCRATCH/first"
    diff3 -m -E "$SCRATCH/theirs" "$SCRATCH/ours" "$SCRATCH/first" >"$SCRATCH/merged" || return
    if is_one_line "$1"; then paste -sd ' ' "$SCRATCH/merged"; else cat "$SCRATCH/merged"; fi
}

is_one_line() { [[ $1 == */cmdline.txt* ]]; }

# The kernel's command line is one line; word by word it can be merged.
lines_of() { if is_one_line "$1"; then tr ' ' '\n' <"$1"; else cat "$1"; fi; }

# take_back PATH: undo `change PATH`.
take_back() {
    local path=$1 now="$ROOT$1" original="$ROOT$STATE/original$1"
    if [[ -e $original ]]; then
        before "$path" "$SCRATCH/base"
        say "  $path becomes what it was."
        [[ $DRY_RUN == no ]] || return 0
        lay "$SCRATCH/base" "$path"
    elif [[ -e $now ]] && cmp -s "$now" "$ROOT$STATE/written$path"; then
        say "  $path is removed."
        [[ $DRY_RUN == no ]] || return 0
        rm -- "$now"
    else
        [[ $DRY_RUN == no ]] || return 0
        set_aside "$path"
    fi
    rm -f -- "$original" "$ROOT$STATE/written$path"
    CHANGED+=("$path")
}

is_ours_alone() { [[ -e $ROOT$STATE/written$1 && ! -e $ROOT$STATE/original$1 ]]; }

# set_aside PATH: keep a file of ours that somebody has edited, under a name that no program reads.
set_aside() {
    local now="$ROOT$1"
    if [[ ! -e $now ]] || cmp -s "$now" "$ROOT$STATE/written$1"; then return; fi
    say "  $1 was edited; the edited one is kept as $1.kept."
    mv -- "$now" "$now.kept"
}

# keep FILE NAME [LIKE]: copy FILE to NAME in the state folder, with mode and owner of LIKE.
keep() {
    local target="$ROOT$STATE/$2"
    mkdir -p -- "${target%/*}"
    [[ $# -lt 3 ]] || cp -p -- "$3" "$target"
    cat "$1" >"$target"
}

# lay FILE PATH: give PATH the content of FILE in one step; the mode of what is there stays.
lay() {
    local target="$ROOT$2"
    mkdir -p -- "${target%/*}"
    if [[ -e $target ]]; then cp -p -- "$target" "$target.new"; else install -m 644 /dev/null "$target.new"; fi
    cat "$1" >"$target.new"
    sync "$target.new"
    mv -- "$target.new" "$target"
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
