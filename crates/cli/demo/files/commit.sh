# Commits these paths, or everything when none are named: sh commit.sh MESSAGE [PATH…]
# Nothing to commit is fine. Needs no identity, and ignores signing and hooks of the machine.
message=$1
shift
[ $# -gt 0 ] || set -- .

commit() {
    git add -- "$@" || return 1
    git diff --cached --quiet -- "$@" && return 0
    git -c user.name="Atomic demo" -c user.email=demo@localhost \
        -c commit.gpgsign=false -c core.hooksPath=/dev/null \
        commit --quiet -m "$message" -- "$@"
}

# Two workers may commit at the same moment, and git lets only one in.
for attempt in 1 2 3 4 5 6 7 8 9 10; do
    commit "$@" 2>/dev/null && exit 0
    sleep 0.2
done

# Nobody holds a lock that long here: it was left by a git that was killed.
find "$(git rev-parse --git-common-dir)" -name '*.lock' -exec rm -f {} +
commit "$@"
