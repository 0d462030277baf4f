//! Rules about commands: how they begin.

use super::wildcard;

/// What runs the command that is written behind it.
const RUNNERS: [&str; 24] = [
    "bash", "builtin", "busybox", "command", "dash", "doas", "env", "eval", "exec", "find",
    "ionice", "ksh", "nice", "nohup", "setsid", "sh", "stdbuf", "sudo", "time", "timeout", "watch",
    "xargs", "zsh", "script",
];

/// Whether a command is surely one that is allowed: `git:*` is `git` with anything behind it,
/// `git log*` anything that starts so.
pub(super) fn is_allowed(uses: &str, command: &str) -> bool {
    if !is_plain(command) || changes_git(command) {
        return false;
    }
    let given: Vec<&str> = words(command).collect();
    if let Some(start) = uses.strip_suffix(":*") {
        return given.starts_with(&words(start).collect::<Vec<_>>());
    }
    match uses.strip_suffix('*') {
        Some(start) => given.join(" ").starts_with(start),
        None => given == words(uses).collect::<Vec<_>>(),
    }
}

/// Whether a command surely fits a pattern with `*` in it, and is one command.
pub(super) fn is_allowed_by_wildcard(pattern: &str, command: &str) -> bool {
    let given: Vec<&str> = words(command).collect();
    is_plain(command) && !changes_git(command) && wildcard::fits(pattern, &given.join(" "))
}

/// Every word of a command that may be a path.
pub(super) fn paths(command: &str) -> Vec<String> {
    let is_path = |word: &String| word.contains('/') || word.starts_with('~') || word == "..";
    loose(command).into_iter().filter(is_path).collect()
}

/// Whether a command may be one that is prohibited, however it is written.
pub(super) fn may_be_prohibited(uses: &str, command: &str) -> bool {
    let start = uses.strip_suffix(":*").unwrap_or(uses);
    let wanted: Vec<&str> = words(start).filter(|word| *word != "*").collect();
    let Some(spoken) = spoken(command).filter(|_| is_plain(command)) else {
        return occurs(&wanted, &loose(command));
    };
    if spoken.iter().any(|word| word.contains(char::is_whitespace) && occurs(&wanted, &loose(word)))
    {
        return true;
    }
    let rest: Vec<String> = spoken.into_iter().skip_while(|word| is_assignment(word)).collect();
    let Some(program) = rest.first() else { return false };
    let runs_another = RUNNERS.contains(&name(program)) || start.trim_start().starts_with('*');
    let is_it =
        wanted.first().is_none_or(|first| fits(first, program) || fits(first, name(program)));
    (runs_another || is_it) && occurs(&wanted, &rest)
}

/// Whether a command is one command: what is behind `;`, `&&` or inside `$(…)` is another.
fn is_plain(command: &str) -> bool {
    let special = [';', '|', '&', '`', '$', '<', '>', '(', '{'];
    !command.contains(special) && !command.contains(|c: char| c.is_control() && c != '\t')
}

/// Whether git is told before its own command what its commands are: such a setting can run
/// anything.
fn changes_git(command: &str) -> bool {
    const WITH_VALUE: [&str; 6] =
        ["-C", "--git-dir", "--work-tree", "--namespace", "--super-prefix", "--attr-source"];
    let mut words = words(command);
    if words.next().map(name) != Some("git") {
        return false;
    }
    while let Some(word) = words.next() {
        let value = if WITH_VALUE.contains(&word) { words.next().unwrap_or_default() } else { "" };
        // Where an option ends cannot be told here.
        if [word, value].iter().any(|text| text.contains(['\'', '"', '\\'])) {
            return true;
        }
        if ["-c", "--config-env", "--exec-path"].iter().any(|start| word.starts_with(start)) {
            return true;
        }
        if !word.starts_with('-') {
            return false;
        }
    }
    false
}

/// As a shell tells words apart, but for quotes.
fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split([' ', '\t']).filter(|word| !word.is_empty())
}

/// The words as a program gets them; nothing when a quote is left open.
fn spoken(command: &str) -> Option<Vec<String>> {
    let (mut all, mut word, mut quote) = (vec![], None::<String>, None);
    let mut letters = command.chars();
    while let Some(letter) = letters.next() {
        match (quote, letter) {
            (None, ' ' | '\t') => all.extend(word.take()),
            (None, '\'' | '"') => {
                quote = Some(letter);
                word.get_or_insert_default();
            }
            (Some(open), _) if open == letter => quote = None,
            (None | Some('"'), '\\') => word.get_or_insert_default().push(letters.next()?),
            _ => word.get_or_insert_default().push(letter),
        }
    }
    all.extend(word);
    quote.is_none().then_some(all)
}

/// Everything that may be a word, whatever surrounds it.
fn loose(command: &str) -> Vec<String> {
    let bare: String = command.chars().filter(|c| !matches!(c, '\'' | '"' | '\\')).collect();
    let ends = |c: char| c.is_whitespace() || c.is_control() || ";|&`$<>(){}!=,".contains(c);
    bare.split(ends).filter(|word| !word.is_empty()).map(str::to_owned).collect()
}

/// Whether the words occur in this order, the first as the name of a program.
fn occurs(wanted: &[&str], given: &[String]) -> bool {
    let mut wanted = wanted.iter().peekable();
    let mut is_first = true;
    for word in given {
        let Some(next) = wanted.peek() else { break };
        if fits(next, word) || (is_first && fits(next, name(word))) {
            wanted.next();
            is_first = false;
        }
    }
    wanted.peek().is_none()
}

fn fits(wanted: &str, word: &str) -> bool {
    wildcard::fits(&wanted.to_ascii_lowercase(), &word.to_ascii_lowercase())
}

/// A program's name without the way to it.
fn name(program: &str) -> &str {
    program.rsplit('/').next().unwrap_or(program)
}

fn is_assignment(word: &str) -> bool {
    let is_name = |name: &str| name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    word.split_once('=').is_some_and(|(before, _)| is_name(before))
}
