//! Reads pictures back, so that a test sees what was drawn and not what was meant.

use std::collections::BTreeMap;

/// A way from one node to another, by their paths.
pub(super) type Way = (String, String);

/// What a picture shows, sorted.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Shown {
    pub(super) nodes: Vec<String>,
    pub(super) ways: Vec<Way>,
}

impl Shown {
    pub(super) fn sorted(mut self) -> Self {
        self.nodes.sort();
        self.ways.sort();
        self
    }
}

/// One tag of an XML text.
#[derive(Debug)]
pub(super) enum Tag {
    Open { name: String, attributes: BTreeMap<String, String> },
    Close(String),
    Text(String),
}

/// Reads an XML text, and fails where it is not well-formed.
pub(super) fn xml(text: &str) -> Vec<Tag> {
    let mut tags = vec![];
    let mut open: Vec<String> = vec![];
    let mut rest = text.trim();
    while !rest.is_empty() {
        let Some(inside) = rest.strip_prefix('<') else {
            let end = rest.find('<').unwrap_or(rest.len());
            assert!(!open.is_empty(), "text outside of the root: {:?}", &rest[..end]);
            tags.push(Tag::Text(plain(&rest[..end])));
            rest = &rest[end..];
            continue;
        };
        let end = inside.find('>').expect("a tag that ends");
        let tag = &inside[..end];
        rest = &inside[end + 1..];
        if let Some(name) = tag.strip_prefix('/') {
            assert_eq!(open.pop().as_deref(), Some(name), "tags are nested");
            tags.push(Tag::Close(name.to_owned()));
            continue;
        }
        let (tag, is_empty) = tag.strip_suffix('/').map_or((tag, false), |tag| (tag, true));
        let (name, attributes) = tag.split_once(' ').unwrap_or((tag, ""));
        assert!(name.bytes().all(|byte| byte.is_ascii_alphanumeric()), "a name: {name:?}");
        let attributes = read_attributes(attributes);
        tags.push(Tag::Open { name: name.to_owned(), attributes });
        if is_empty {
            tags.push(Tag::Close(name.to_owned()));
        } else {
            open.push(name.to_owned());
        }
        assert!(!open.is_empty() || rest.is_empty(), "one root");
    }
    assert_eq!(open, [""; 0], "every tag is closed");
    tags
}

fn read_attributes(mut text: &str) -> BTreeMap<String, String> {
    let mut attributes = BTreeMap::new();
    while !text.trim().is_empty() {
        let (name, rest) = text.trim_start().split_once("=\"").expect("an attribute");
        assert!(name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-'), "name: {name:?}");
        let (value, rest) = rest.split_once('"').expect("a quote at the end");
        assert_eq!(attributes.insert(name.to_owned(), plain(value)), None, "twice: {name}");
        text = rest;
    }
    attributes
}

/// The text that is meant, where nothing is in it that XML forbids.
fn plain(text: &str) -> String {
    let allowed = |c: char| c == '\n' || (c >= ' ' && !matches!(c, '\u{FFFE}' | '\u{FFFF}'));
    assert!(text.chars().all(allowed), "a character that XML does not allow: {text:?}");
    assert!(!text.contains('<'), "a bare <: {text:?}");
    let mut parts = text.split('&');
    let mut meant = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (name, after) = part.split_once(';').expect("a reference that ends");
        meant.push(match name {
            "amp" => '&',
            "lt" => '<',
            "gt" => '>',
            "quot" => '"',
            number => read_number(number.strip_prefix('#').expect("a known reference")),
        });
        meant.push_str(after);
    }
    meant
}

fn read_number(number: &str) -> char {
    number.parse().ok().and_then(char::from_u32).expect("the number of a character")
}

/// Reads a Mermaid flowchart. Branches are in the paths as if they were nodes.
pub(super) fn mermaid(text: &str) -> Shown {
    let mut shown = Shown::default();
    let mut paths: BTreeMap<String, String> = BTreeMap::new();
    let mut scopes: Vec<String> = vec![String::new()];
    let mut links = vec![];
    for line in text.lines().skip(1).map(str::trim) {
        if line == "end" {
            scopes.pop().expect("something to end");
            continue;
        }
        let words: Vec<&str> = line.splitn(2, ' ').collect();
        if matches!(words[0], "classDef" | "linkStyle" | "style" | "direction") {
            continue;
        }
        let declared = line.strip_prefix("subgraph ").unwrap_or(line);
        if declared.split(' ').nth(1).is_some_and(|word| word.contains("->") || word.contains("=>"))
        {
            links.push(line);
            continue;
        }
        let name_end = declared.find(|c: char| !c.is_ascii_alphanumeric()).expect("a shape");
        let (name, shape) = declared.split_at(name_end);
        let label = shape.split('"').nth(1).expect("a label");
        let id = mermaid_text(label.split("<br/>").next().unwrap_or_default());
        let id = if line.starts_with("subgraph ") {
            id.split(" · ").next().unwrap_or_default().to_owned()
        } else {
            id
        };
        let is_marker = shape.starts_with("((") || shape.starts_with('>');
        let id = if is_marker { format!("({id})") } else { id };
        let scope = scopes.last().expect("a scope");
        let path = if scope.is_empty() { id } else { format!("{scope}/{id}") };
        assert_eq!(paths.insert(name.to_owned(), path.clone()), None, "{name} is there twice");
        if line.starts_with("subgraph ") {
            scopes.push(path.clone());
        }
        if !is_marker && !shape.ends_with(":::missing") {
            shown.nodes.push(path);
        }
    }
    assert_eq!(scopes.len(), 1, "every subgraph ends");
    for link in links {
        let (from, _) = link.split_once(' ').expect("where from");
        let (_, to) = link.rsplit_once(' ').expect("where to");
        shown.ways.push((paths[from].clone(), paths[to].clone()));
    }
    shown.sorted()
}

/// The text that a label of Mermaid means. Nothing in it may be left for Mermaid to understand.
pub(super) fn mermaid_text(label: &str) -> String {
    let mut parts = label.split('#');
    let mut meant = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (number, after) = part.split_once(';').expect("a reference that ends");
        meant.push(read_number(number));
        meant.push_str(after);
    }
    let bare: String =
        label.split('#').map(|part| part.split_once(';').map_or(part, |p| p.1)).collect();
    let special = |c: char| "\"`<>&|[]{}\\%*_~;:".contains(c) || c.is_control();
    assert!(!bare.contains(special), "bare in {label:?}");
    assert!(!meant.contains("\\n"), "broken by Mermaid: {label:?}");
    meant.replace('\u{2060}', "")
}

/// Reads the language of Graphviz.
pub(super) fn dot(text: &str) -> Shown {
    let mut shown = Shown::default();
    let mut depth = 0;
    for line in text.lines().map(str::trim) {
        depth += i32::from(line.ends_with('{')) - i32::from(line == "}");
        if let Some(name) = line.strip_prefix("subgraph ") {
            let (name, _) = quoted(name);
            let path = name.strip_prefix("cluster_").expect("the name of a cluster");
            if !path.ends_with(']') {
                shown.nodes.push(path.to_owned());
            }
        } else if line.starts_with('"') {
            let (from, rest) = quoted(line);
            let invisible = rest.contains("style=invis");
            let Some(rest) = rest.strip_prefix(" -> ") else {
                let is_marker = from.ends_with(')') && (invisible || !rest.contains("style=\""));
                if !is_marker && !rest.contains("style=dashed") {
                    shown.nodes.push(from);
                }
                continue;
            };
            let (to, options) = quoted(rest);
            let cluster = |option: &str| {
                let at = options.find(option)? + option.len();
                quoted(&options[at..]).0.strip_prefix("cluster_").map(str::to_owned)
            };
            // From the end of a cluster to its start.
            let out = ["/(end)", "/(out)"].iter().find_map(|end| from.strip_suffix(end));
            if let Some(around) = out.filter(|_| !invisible && !options.contains("ltail=")) {
                shown.ways.push((around.to_owned(), around.to_owned()));
            } else if !invisible {
                let (tail, head) = (cluster("ltail="), cluster("lhead="));
                shown.ways.push((tail.unwrap_or(from), head.unwrap_or(to)));
            }
        }
    }
    assert_eq!(depth, 0, "braces match");
    shown.sorted()
}

/// A text in quotes and what follows it.
fn quoted(text: &str) -> (String, &str) {
    let mut meant = String::new();
    let inside = text.strip_prefix('"').expect("a quote");
    let mut chars = inside.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            '\\' => meant.extend(chars.next().map(|(_, c)| c)),
            '"' => return (meant, &inside[at + 1..]),
            c => meant.push(c),
        }
    }
    panic!("no quote at the end of {text}");
}
