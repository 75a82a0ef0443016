#!/usr/bin/env bash
# Makes a Raspberry Pi ready for a MicroDuck, step by step, each explained first. See README.md beside it.
set -euo pipefail
# What is installed is for every user to read, whatever root's own setting is.
umask 022

readonly USAGE="usage: sudo hardware/pi/install.sh [OPTION]...

Makes a Raspberry Pi with Raspberry Pi OS (64-bit, Bookworm or later) ready for a MicroDuck. It may be run
again at any time; what is in order already stays as it is.

  --dry-run       say what each step would change, and change nothing
  --uninstall     take everything back
  --user NAME     who drives the duck; without it the user who called sudo
  --bluetooth     leave Bluetooth on, for a wireless gamepad (a Pi 5 always does)
  --i2c           turn I2C on, for an IMU on it; so do settings whose [imu] kind is one
  --realtime      let the user ask for real-time priority (\`duck run --realtime\`)
  --extras LIST   optional parts of the toolkit as well, for example gamepad
  --root DIR      work in a copy of a board's files under DIR, with its own commands in DIR/usr/bin
  --help          show this"

HERE=$(dirname -- "$(realpath -- "${BASH_SOURCE[0]}")")
readonly HERE SOURCE="$HERE/../.."
readonly BOOT=/boot/firmware VENV=/opt/microduck STAMP=source.sha256
readonly SOURCES=(hardware firmware_bridge microduck export pyproject.toml constraints.txt README.md LICENSE)

ROOT="" DRY_RUN=no UNINSTALL=no USER_NAME="${SUDO_USER:-}" BLUETOOTH=no I2C=no REALTIME=no EXTRAS=""
STEP=0 CHANGED=() SCRATCH="" COMING=""

say() { printf '%s\n' "$@"; }
die() {
    printf 'install.sh: %s\n' "$*" >&2
    exit 1
}

# shellcheck source=changes.sh
source "$HERE/changes.sh"

main() {
    read_options "$@"
    [[ $EUID == 0 || -n $ROOT || $DRY_RUN == yes ]] ||
        die "this changes files of the system and needs root rights: run it with sudo, or with --dry-run"
    trap clean_up EXIT
    trap 'exit 130' INT
    trap 'exit 143' TERM HUP
    SCRATCH=$(mktemp -d)
    if [[ $UNINSTALL == yes ]]; then uninstall; else install_all; fi
    ending
}

clean_up() {
    local code=$?
    rm -rf -- ${SCRATCH:+"$SCRATCH"} ${COMING:+"$COMING"}
    [[ $code == 0 || $STEP == 0 || $DRY_RUN == yes ]] ||
        say "install.sh: stopped in step $STEP; what is done stays. Put right what is named above and run this again," \
            "or take it back with --uninstall." >&2
}

# rehearsed COMMAND: run COMMAND only after a dry run of it, so that what must be refused is before any change.
rehearsed() {
    if [[ $DRY_RUN == no ]]; then (DRY_RUN=yes && "$1") >/dev/null; fi
    "$1"
}

read_options() {
    while [[ $# -gt 0 ]]; do
        case $1 in
            --dry-run) DRY_RUN=yes ;;
            --uninstall) UNINSTALL=yes ;;
            --bluetooth) BLUETOOTH=yes ;;
            --i2c) I2C=yes ;;
            --realtime) REALTIME=yes ;;
            --user | --extras | --root)
                [[ $# -gt 1 ]] || die "$1 needs a value; --help shows the options"
                set_option "$1" "$2"
                shift
                ;;
            --help)
                say "$USAGE"
                exit 0
                ;;
            *) die "there is no option $1; --help shows them" ;;
        esac
        shift
    done
}

set_option() {
    case $1 in
        --user) USER_NAME=$2 ;;
        --extras)
            [[ $2 =~ ^[a-z0-9,]+$ ]] || die "--extras is '$2'; write for example gamepad,i2c"
            EXTRAS=$2
            ;;
        --root)
            ROOT=$(realpath -e -- "$2") || die "--root: there is no folder $2"
            [[ -d $ROOT && $ROOT != / ]] || die "--root must be a folder other than /; leave it out for this board"
            ;;
    esac
}

install_all() {
    check_system
    check_user
    check_places
    rehearsed install_steps
}

install_steps() {
    step "the serial port" \
        "The servos need a UART that keeps 1,000,000 baud exactly: the PL011, /dev/ttyAMA0, on GPIO14 and 15." \
        "${BLUETOOTH_TEXT}"
    change "$BOOT/config.txt" with_block
    step "no console on it" \
        "A login prompt or the kernel's messages on the servos' line would eat their answers."
    change "$BOOT/cmdline.txt" without_console
    link /etc/systemd/system/serial-getty@ttyAMA0.service /dev/null
    step "Wi-Fi without naps" \
        "Power saving lets what comes over Wi-Fi wait, and with it your orders."
    change /etc/NetworkManager/conf.d/microduck.conf wifi_text
    if [[ $I2C == yes ]]; then
        step "the I2C device" "Programs reach I2C through /dev/i2c-1, which the module i2c-dev provides."
        change /etc/modules-load.d/microduck.conf i2c_text
    fi
    step "USB adapters" \
        "They collect bytes for 16 ms unless told otherwise; every read would wait for that. The rule sets 1 ms" \
        "and names an FTDI adapter /dev/duck-usb, whatever else is plugged in."
    change /etc/udev/rules.d/99-microduck.rules cat "$HERE/99-microduck.rules"
    system udevadm control --reload
    step "rights of $USER_NAME" "Serial ports, gamepads and I2C belong to groups. The duck needs no root rights."
    add_groups
    if [[ $REALTIME == yes ]]; then
        step "real-time priority" "Allows \`duck run --realtime\` to go before other programs, and not to be paged out."
        change /etc/security/limits.d/microduck.conf limits_text
    fi
    step "the toolkit" "Installs the \`duck\` command and what it needs into $VENV, apart from the system's Python."
    install_toolkit
    step "the service" \
        "microduck@$USER_NAME lets a duck be driven by other programs, as \`duck run --remote\` does. It starts limp" \
        "and moves nothing before it is told to. It is not switched on here; README.md says how and when."
    change /etc/systemd/system/microduck@.service cat "$HERE/microduck@.service"
    [[ $DRY_RUN == yes ]] || remember users "$USER_NAME"
    system systemctl daemon-reload
}

check_system() {
    local model system
    model=$(tr -d '\0' 2>/dev/null <"$ROOT/proc/device-tree/model") || model="of an unknown make"
    BLUETOOTH_TEXT="Bluetooth uses it until now, and is switched off; --bluetooth moves it to the small UART instead."
    BOOT_LINES=(enable_uart=1)
    case $model in
        "Raspberry Pi Zero 2 "* | "Raspberry Pi 3 "* | "Raspberry Pi 4 "*)
            # The small UART's speed hangs on the core's clock, which must then stand still.
            if [[ $BLUETOOTH == yes ]]; then
                BOOT_LINES+=(dtoverlay=miniuart-bt core_freq=250)
                BLUETOOTH_TEXT="Bluetooth, which uses it until now, moves to the small UART."
            else
                BOOT_LINES+=(dtoverlay=disable-bt)
            fi
            ;;
        "Raspberry Pi 5 "*)
            BOOT_LINES=(dtparam=uart0=on)
            BLUETOOTH_TEXT="Bluetooth has a UART of its own on this board, and stays as it is."
            ;;
        *) die "this board is ${model}; known are Raspberry Pi Zero 2 W, 3, 4 and 5. README.md says what others need" ;;
    esac
    [[ -f $ROOT$BOOT/config.txt && -f $ROOT$BOOT/cmdline.txt ]] ||
        die "there is no $BOOT/config.txt and cmdline.txt; flash Raspberry Pi OS Bookworm or later"
    system=$(ask dpkg --print-architecture) || system=unknown
    [[ $system == arm64 ]] ||
        die "this system is $system, but the toolkit's libraries exist for arm64; flash the 64-bit Raspberry Pi OS"
    say "Board: $model"
}

check_user() {
    local entry home settings
    [[ $USER_NAME =~ ^[a-z_][a-z0-9_-]*$ && $USER_NAME != root ]] ||
        die "the user is '$USER_NAME'; name who drives the duck, not root: --user NAME"
    entry=$(grep -- "^$USER_NAME:" "$ROOT/etc/passwd") || die "there is no user $USER_NAME; --user NAME names another"
    home=$(cut -d : -f 6 <<<"$entry")
    settings="$ROOT$home/.config/microduck/duck.toml"
    if grep -Eqs '^[[:space:]]*kind[[:space:]]*=[[:space:]]*"[a-z0-9]+-i2c"' "$settings"; then I2C=yes; fi
    if [[ $I2C == yes ]]; then
        BOOT_LINES+=(dtparam=i2c_arm=on)
        EXTRAS="${EXTRAS:+$EXTRAS,}i2c"
    fi
}

check_places() {
    ask python3 -c 'import ensurepip, sys, venv; sys.exit(not (3, 11) <= sys.version_info < (3, 14))' ||
        die "the toolkit needs Python 3.11 to 3.13 with its venv module: \`sudo apt install python3-venv\`"
    [[ ! -e $ROOT$VENV || -e $ROOT$VENV/$STAMP ]] ||
        die "$ROOT$VENV is there and is not ours; move it away, then run this again"
}

# Filters for `change`: what is there comes in, what shall be there goes out.

with_block() {
    local base line
    base=$(cat && echo .)
    base=${base%.}
    printf '%s' "$base"
    [[ -z $base || $base == *$'\n' ]] || echo
    say "$BEGIN" "[all]"
    for line in "${BOOT_LINES[@]}"; do
        # Of two overlays that move the same UART, the one that was there first stays alone.
        if [[ $line == dtoverlay=* ]] && grep -Eq '^dtoverlay=(miniuart-bt|disable-bt)' <<<"$base"; then continue; fi
        say "$line"
    done
    say "$END"
}

without_console() { sed -E ":again; s/(^| )$CONSOLE( |\$)/ /; t again; s/  +/ /g; s/^ //; s/ \$//"; }

wifi_text() { say "[connection]" "# 2 switches it off." "wifi.powersave = 2"; }

i2c_text() { say i2c-dev; }

limits_text() { say "$USER_NAME - rtprio 40" "$USER_NAME - memlock unlimited"; }

add_groups() {
    local group groups=(dialout input)
    [[ $I2C == no ]] || groups+=(i2c)
    for group in "${groups[@]}"; do
        if ! grep -q -- "^$group:" "$ROOT/etc/group"; then
            say "  there is no group $group here; nothing to do."
        elif is_member "$USER_NAME" "$group"; then
            say "  $USER_NAME is in $group already."
        else
            say "  $USER_NAME joins $group, from the next login on."
            [[ $DRY_RUN == yes ]] || remember groups "$USER_NAME $group"
            system usermod -aG "$group" "$USER_NAME"
            CHANGED+=(groups)
        fi
    done
}

is_member() { grep -Eq -- "^$2:[^:]*:[^:]*:(.*,)?$1(,|\$)" "$ROOT/etc/group"; }

install_toolkit() {
    local sum place="$ROOT$VENV" python="$ROOT$VENV/bin/python"
    sum=$(cd "$SOURCE" && { find "${SOURCES[@]}" -type f ! -path '*/__pycache__/*' -print0 | sort -z |
        xargs -0 sha256sum; say "$EXTRAS"; } | sha256sum)
    if [[ -e $place/$STAMP && $(<"$place/$STAMP") == "$sum" ]]; then
        say "  $VENV holds these very files already."
        return
    fi
    # Built from a copy, so that root leaves nothing in your checkout.
    [[ $DRY_RUN == yes ]] || { mkdir -p "$place" "$SCRATCH/source" && : >"$place/$STAMP"; }
    [[ $DRY_RUN == yes ]] || (cd "$SOURCE" && cp -r "${SOURCES[@]}" "$SCRATCH/source")
    system python3 -m venv "$place"
    system "$python" -m pip install --quiet -c "$SOURCE/constraints.txt" "$SCRATCH/source${EXTRAS:+[$EXTRAS]}"
    link /usr/local/bin/duck "$VENV/bin/duck"
    [[ $DRY_RUN == yes ]] || printf '%s\n' "$sum" >"$place/$STAMP"
    CHANGED+=("$VENV")
}

uninstall() {
    if [[ -d $ROOT$STATE ]]; then
        rehearsed uninstall_steps
    else
        say "Nothing is installed, so there is nothing to take back."
    fi
}

uninstall_steps() {
    local name group path
    step "the service" "Stops it, which sits a duck down that stands, and switches it off."
    while read -r name; do
        # An earlier call, or you, may have removed it already.
        system systemctl disable --now "microduck@$name" || say "  microduck@$name was not there."
    done < <(remembered users)
    step "groups" "Takes the user out of the groups that this script had added."
    while read -r name group; do
        if is_member "$name" "$group"; then system gpasswd -d "$name" "$group"; fi
    done < <(remembered groups)
    step "files" "Gives every file back what it held; edits of yours elsewhere in it stay."
    while read -r path; do take_back "$path"; done < <(written_paths)
    unlink_ours
    if [[ -e $ROOT$VENV/$STAMP ]]; then
        say "  $VENV is removed."
        [[ $DRY_RUN == yes ]] || rm -rf -- "$ROOT${VENV:?}"
    fi
    [[ $DRY_RUN == yes ]] || rm -rf -- "$ROOT${STATE:?}"
    [[ $DRY_RUN == yes ]] || rmdir -- "$ROOT${STATE%/*}" 2>/dev/null || true
    system systemctl daemon-reload
    system udevadm control --reload
}

step() {
    say "" "Step $((++STEP)): $1" "${@:2}"
}

# system COMMAND...: run what acts on the running system; in a scratch root only what lies in it.
system() {
    if [[ $DRY_RUN == yes ]]; then say "  would run: $*"; else ask "$@"; fi
}

# ask COMMAND...: the same for what only asks, and so also in a dry run.
ask() {
    local command=$1
    [[ -z $ROOT || $command == "$ROOT"/* ]] || command="$ROOT/usr/bin/$1"
    if [[ -n $ROOT && ! -x $command ]]; then
        say "  not there in $ROOT, so not run: $*" >&2
        return
    fi
    "$command" "${@:2}"
}

ending() {
    say ""
    if [[ $DRY_RUN == yes ]]; then
        say "This was a dry run; nothing has changed."
    elif [[ ${#CHANGED[@]} == 0 ]]; then
        say "Everything was as it should be."
    elif [[ $UNINSTALL == yes ]]; then
        say "Taken back. Restart the board: sudo reboot"
    else
        say "Done. Restart the board (sudo reboot), then: duck doctor"
    fi
}

main "$@"
