//! Real files that something happened to, and files that are no such thing: whatever they are, each
//! is listed or told of, and reading them ends.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use atomic_registry::Registry;
use jsonc_parser::ast::Value as Ast;
use jsonc_parser::{CollectOptions, ParseOptions, parse_to_ast};
use proptest::prelude::*;
use proptest::sample::Index;

use crate::tree::Tree;

/// Every file of the quirks and every one that ships with the program.
static REAL: LazyLock<Vec<Vec<u8>>> = LazyLock::new(|| {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut files = vec![];
    for folder in ["tests/quirks", "../../assets/agents", "../../assets/skills"] {
        collect(&here.join(folder), &mut files);
    }
    assert!(files.len() > 250, "{} files", files.len());
    files
});

fn collect(folder: &Path, files: &mut Vec<Vec<u8>>) {
    let mut paths: Vec<PathBuf> =
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    for path in paths {
        if path.is_dir() {
            collect(&path, files);
        } else if let Ok(bytes) = fs::read(&path) {
            files.push(bytes);
        }
    }
}

/// Something that happens to a file.
#[derive(Clone, Debug)]
enum Accident {
    Flip(Index, u8),
    Cut(Index, Index),
    Insert(Index, &'static str),
    Double(Index, Index),
    Splice(Index, Index, Index),
}

fn accident() -> impl Strategy<Value = Accident> {
    let piece = prop::sample::select(vec![
        "---\n",
        "...\n",
        "+++\n",
        "```\n",
        "<!--",
        "\n\n",
        "\r",
        "\t",
        ": ",
        ":",
        "- ",
        "[",
        "]",
        "{",
        "}",
        "\"",
        "'",
        "|\n",
        ">\n",
        "&a ",
        "*a",
        "!!x ",
        "<<: *a\n",
        "#",
        "@",
        "`",
        "%",
        "? ",
        "name: ",
        "tools: ",
        "description: ",
        "model: [",
        "../",
        "\0",
        "\u{feff}",
        "\u{a0}",
    ]);
    prop_oneof![
        (any::<Index>(), any::<u8>()).prop_map(|(at, bits)| Accident::Flip(at, bits)),
        (any::<Index>(), any::<Index>()).prop_map(|(from, to)| Accident::Cut(from, to)),
        (any::<Index>(), piece).prop_map(|(at, piece)| Accident::Insert(at, piece)),
        (any::<Index>(), any::<Index>()).prop_map(|(from, to)| Accident::Double(from, to)),
        (any::<Index>(), any::<Index>(), any::<Index>())
            .prop_map(|(at, other, from)| Accident::Splice(at, other, from)),
    ]
}

/// Accidents happen near the beginning, where the head is.
fn place(at: &Index, bytes: &[u8]) -> usize {
    at.index(bytes.len().min(400) + 1)
}

fn range(from: &Index, to: &Index, bytes: &[u8]) -> std::ops::Range<usize> {
    let (from, to) = (place(from, bytes), place(to, bytes));
    from.min(to)..from.max(to)
}

fn happen(accident: &Accident, bytes: &mut Vec<u8>) {
    match accident {
        Accident::Flip(at, bits) => {
            let at = place(at, bytes);
            if let Some(byte) = bytes.get_mut(at) {
                *byte ^= bits;
            }
        }
        Accident::Cut(from, to) => {
            bytes.drain(range(from, to, bytes));
        }
        Accident::Insert(at, piece) => {
            let at = place(at, bytes);
            bytes.splice(at..at, piece.bytes());
        }
        Accident::Double(from, to) => {
            let range = range(from, to, bytes);
            let piece = bytes[range.clone()].to_vec();
            bytes.splice(range.end..range.end, piece);
        }
        Accident::Splice(at, other, from) => {
            let at = place(at, bytes);
            let other = other.get(&REAL);
            bytes.truncate(at);
            bytes.extend(&other[place(from, other)..]);
        }
    }
}

fn mutant() -> impl Strategy<Value = Vec<u8>> {
    let accidents = prop::collection::vec(accident(), 1..6);
    (any::<Index>(), accidents).prop_map(|(real, accidents)| {
        let mut bytes = real.get(&REAL).clone();
        for accident in &accidents {
            happen(accident, &mut bytes);
        }
        bytes
    })
}

/// Writes files as agents, skills and settings, reads them all, and finds each of them again.
fn all_are_listed_or_told(files: &[Vec<u8>]) {
    let tree = Tree::of(&[]);
    let mut paths = vec![];
    for (index, bytes) in files.iter().enumerate() {
        let path = match index % 3 {
            0 => format!("project/.claude/agents/a{index}.md"),
            1 => format!("project/.claude/skills/s{index}/SKILL.md"),
            _ => format!("home/.opencode/command/c{index}.md"),
        };
        tree.write_bytes(&path, bytes);
        paths.push(tree.path(&path));
    }
    if let Some(bytes) = files.first() {
        tree.write_bytes("project/opencode.json", bytes);
    }
    let registry = tree.registry();
    let known = known(&registry);
    for path in &paths {
        assert!(known.contains(path.as_path()), "nobody says anything about {}", path.display());
    }
    if let Some(bytes) = files.first() {
        settings_are_listed_or_told(bytes, &tree.path("project/opencode.json"), &registry);
    }
}

/// Settings that are none are told; of those that are, every command and every agent is listed or
/// told.
fn settings_are_listed_or_told(bytes: &[u8], path: &Path, registry: &Registry) {
    let told = registry.findings.iter().filter(|finding| finding.path == path).count();
    let listed = registry.every().filter(|one| one.origin.path.as_deref() == Some(path)).count();
    let Ok(text) = std::str::from_utf8(bytes) else {
        assert!(told > 0, "nobody says that the settings are no text");
        return;
    };
    if text.contains('\0') {
        assert!(told > 0, "nobody says that the settings hold bytes that are no text");
        return;
    }
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let (collect, options) = (CollectOptions::default(), ParseOptions::default());
    let parsed = parse_to_ast(text, &collect, &options).map(|parsed| parsed.value);
    let entries = match parsed {
        Ok(Some(Ast::Object(settings))) => settings.properties.iter().fold(
            BTreeMap::new(),
            |mut entries: BTreeMap<String, usize>, property| {
                let name = property.name.clone().into_string();
                // Of two with one name the first is told as a whole.
                let lost = entries.get(&name).map_or(0, |_| 1);
                let own = property.value.as_object().map_or(1, |all| all.properties.len());
                entries.insert(name, lost + own);
                entries.retain(|name, _| matches!(name.as_str(), "agent" | "command"));
                entries
            },
        ),
        Ok(None | Some(Ast::NullKeyword(_))) => BTreeMap::new(),
        Ok(Some(_)) | Err(_) => BTreeMap::from([(String::new(), 1)]),
    };
    let entries: usize = entries.values().sum();
    assert!(listed + told >= entries, "{listed} listed and {told} told of {entries} in {text}");
}

/// Every file that is listed, be it hidden by another one, or told of. All prompts are read too.
fn known(registry: &Registry) -> BTreeSet<&Path> {
    let mut known: BTreeSet<&Path> =
        registry.findings.iter().map(|finding| finding.path.as_path()).collect();
    for entity in registry.all() {
        assert!(registry.prompt(entity).is_ok(), "{} has no prompt", entity.name);
        for one in std::iter::once(entity).chain(registry.overridden(entity)) {
            known.extend(one.origin.path.as_deref());
        }
    }
    known
}

/// Settings of OpenCode with something of every kind in them.
const SETTINGS: &str = r#"{
  // whose they are
  "agent": {
    "one": {"prompt": "x", "tools": {"bash": false}},
    "two": {"description": "no prompt"},
    "build": {"model": "gpt-5"},
    "one": {"prompt": "again"}
  },
  "command": {"go": {"template": "Go {file:x}"}, "stay": {"template": "Stay $1"},},
}"#;

fn settings_mutant() -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(accident(), 0..4).prop_map(|accidents| {
        let mut bytes = SETTINGS.as_bytes().to_vec();
        for accident in &accidents {
            happen(accident, &mut bytes);
        }
        bytes
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn settings_of_others_are_listed_or_told(settings in settings_mutant()) {
        all_are_listed_or_told(&[settings]);
    }

    #[test]
    fn mutants_are_listed_or_told(files in prop::collection::vec(mutant(), 1..16)) {
        all_are_listed_or_told(&files);
    }

    #[test]
    fn bytes_are_listed_or_told(
        files in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..300), 1..16)
    ) {
        all_are_listed_or_told(&files);
    }

    #[test]
    fn heads_are_listed_or_told(
        heads in prop::collection::vec(
            "([a-z\\-]{0,6}[:,\\[\\]{}&*!|>'\"#%@` \t\n-]{0,4}){0,30}", 1..16)
    ) {
        let files: Vec<Vec<u8>> =
            heads.iter().map(|head| format!("---\n{head}\n---\nbody").into_bytes()).collect();
        all_are_listed_or_told(&files);
    }
}

/// A head that is read all the same, and the largest file; something is left for what is around.
const SIZES: [usize; 2] = [24 * 1024, 1024 * 1024 - 100];

fn filled(piece: &str, size: usize) -> String {
    piece.repeat(size / piece.len())
}

/// Lines of their own kind each, until it is full.
fn numbered(size: usize, line: impl Fn(usize) -> String) -> String {
    let mut text = String::new();
    for number in 0.. {
        let line = line(number);
        if text.len() + line.len() > size {
            break;
        }
        text.push_str(&line);
    }
    text
}

/// Each line further in than the one before.
fn steps(size: usize, line: &str) -> String {
    numbered(size, |number| format!("{}{line}\n", " ".repeat(number)))
}

/// Anchors that stand for four times as much as the one before.
fn laughs(levels: usize) -> String {
    let mut text = "a0: &a0 [ha, ha, ha, ha]\n".to_owned();
    for level in 1..levels {
        let last = format!("*a{}", level - 1);
        text.push_str(&format!("a{level}: &a{level} [{last}, {last}, {last}, {last}]\n"));
    }
    text
}

/// Heads of one thing, again and again.
fn large_heads(size: usize) -> Vec<String> {
    let pieces = [
        "[",
        "{",
        "{a: ",
        "[{",
        "- ",
        "? ",
        "a:\n ",
        "\"",
        "'",
        "#",
        "\n",
        "\t",
        "a",
        "a: @\n",
        "- name: @\n",
        "name: &x y\n",
        "<<: *a\n",
        "&a *a ",
        "!!x ",
        "name:x\n",
        "<example>\n",
        "<!--\n",
        "\r",
        "---\n",
    ];
    let begins = [
        ("description: x\n", "<example>\n"),
        ("description: \"", "user: x\n"),
        ("description: |\n", "x\n"),
        ("name: ", "x"),
        ("tools: ", "("),
        ("tools:\n", "  *: false\n"),
        ("tools:\n", "  - Bash(a: *)\n"),
    ];
    let tools = numbered(size, |number| format!("t{number},"));
    let mut heads: Vec<String> = pieces.iter().map(|piece| filled(piece, size)).collect();
    heads.extend(begins.iter().map(|(begin, rest)| format!("{begin}{}", filled(rest, size))));
    heads.extend(["a:", "- a", "name: x"].map(|line| steps(size, line)));
    heads.extend(
        ["tools: ", "tools: [", "aliases: ", "disallowed-tools: "]
            .map(|key| format!("{key}{tools}")),
    );
    heads.push(numbered(size, |number| format!("k{number}: 1\n")));
    heads.push(numbered(size, |number| format!("k{number}: @\n")));
    heads.push(numbered(size, |number| format!("k{number}: &k{number} 1\n")));
    heads.push(format!("{}: x\n{}", "k".repeat(size / 2), filled("x\n", size / 2)));
    heads.extend([10, 60, 600].map(laughs));
    heads
}

#[test]
fn large_heads_end() {
    let [small, large] = SIZES;
    let mut files = vec![];
    for head in large_heads(small) {
        files.push(format!("---\n{head}\n---\nbody").into_bytes());
        files.push(head.into_bytes());
    }
    for head in large_heads(large) {
        files.push(format!("---\n{head}").into_bytes());
    }
    all_are_listed_or_told(&files);
}

/// Settings as large as a file may be, and deeper than any.
#[test]
fn large_settings_end() {
    let [_, size] = SIZES;
    let agent = |fields: &str| format!("{{\"agent\": {{\"a\": {{\"prompt\": \"x\", {fields}}}}}}}");
    let texts = [
        filled("[", size),
        filled("{\"a\":", size),
        filled("/*", size),
        filled("\"", size),
        agent(&format!("\"x\": {}", filled("[", size - 100))),
        agent(&format!("\"x\": {}{}", "[".repeat(400), "]".repeat(400))),
        agent(&format!("\"tools\": \"{}\"", filled("(", size - 100))),
        format!("{{\"command\": {{\"a\": {{\"template\": \"{}\"}}}}}}", filled("{file:./x}", size)),
    ];
    for text in texts {
        let tree = Tree::of(&[("project/x", &filled("x", size))]);
        tree.write("project/opencode.json", &text);
        let registry = tree.registry();
        let path = tree.path("project/opencode.json");
        assert!(known(&registry).contains(path.as_path()), "{}", &text[..80]);
    }
}
