//! The names that agents of VS Code and GitHub Copilot have for tools and sets of tools.
//!
//! From the documentation of VS Code ("Tools and context reference", September 2026), the tool
//! aliases of GitHub's "Custom agents configuration", the tools of the Copilot CLI, and older names
//! that public agents still use (`editFiles`, `runCommands`, `codebase`).

/// Tools that run commands, and tools for commands that are running.
const SHELL: &[&str] = &["bash", "bashoutput", "bashinput", "killshell", "listshells"];

/// Tools that change files.
const EDIT: &[&str] = &["edit", "write", "multiedit", "patch", "notebookedit"];

/// Tools that look for files and for text in them.
const SEARCH: &[&str] = &["grep", "glob", "ls"];

/// Tools that keep a list of things to do.
const TODO: &[&str] = &["todowrite", "todoread", "taskcreate", "taskget", "tasklist", "taskupdate"];

/// Names in lower case, each row with the tools that they stand for. A row without tools has
/// names of what only an editor can do, or of what runs something without being a shell.
const NAMES: &[(&[&str], &[&str])] = &[
    (
        &[
            "execute",
            "shell",
            "bash",
            "powershell",
            "runcommands",
            "runinterminal",
            "run_in_terminal",
            "runtasks",
            "createandruntask",
        ],
        SHELL,
    ),
    (&["getterminaloutput", "get_terminal_output", "awaitterminal"], &["bashoutput"]),
    (&["sendtoterminal"], &["bashinput"]),
    (&["killterminal"], &["killshell"]),
    (
        &["read", "notebookread", "readfile", "read_file", "view", "viewimage"],
        &["read", "notebookread"],
    ),
    (&["getnotebooksummary", "readnotebookcelloutput"], &["notebookread"]),
    (
        &[
            "edit",
            "multiedit",
            "write",
            "notebookedit",
            "editfiles",
            "edit_file",
            "apply_patch",
            "str_replace",
            "str_replace_editor",
            "replace_string_in_file",
            "insert_edit_into_file",
        ],
        EDIT,
    ),
    (&["create", "createfile", "create_file"], &["write"]),
    (&["editnotebook", "createjupyternotebook"], &["notebookedit"]),
    (&["search", "grep", "glob", "rg"], SEARCH),
    (&["textsearch", "grep_search"], &["grep"]),
    (&["filesearch", "file_search", "findfiles", "findtestfiles"], &["glob"]),
    (&["listdirectory", "list_dir"], &["ls"]),
    (&["codebase", "semantic_search"], &["grep", "glob", "read"]),
    (&["usages", "listcodeusages"], &["lsp", "grep"]),
    (&["web"], &["webfetch", "websearch"]),
    (&["fetch", "fetch_webpage", "webfetch", "web_fetch"], &["webfetch"]),
    (&["websearch", "web_search"], &["websearch"]),
    (
        &["agent", "custom-agent", "task", "runsubagent", "subagent"],
        &["task", "taskoutput", "listagents"],
    ),
    (&["todo", "todos", "todowrite", "manage_todo_list", "update_todo"], TODO),
    (&["askquestions", "ask_user"], &["question"]),
    (&["skill", "skills"], &["skill"]),
    (
        &[
            "browser",
            "changes",
            "clickelement",
            "createdirectory",
            "executionsubagent",
            "extensions",
            "getprojectsetupinfo",
            "gettaskoutput",
            "githubrepo",
            "githubtextsearch",
            "installextension",
            "memory",
            "navigatepage",
            "new",
            "newworkspace",
            "openbrowserpage",
            "opensimplebrowser",
            "problems",
            "readpage",
            "rename",
            "rendermermaiddiagram",
            "resolvememoryfileuri",
            "runcommand",
            "runnotebookcell",
            "runnotebooks",
            "runtask",
            "runtests",
            "runvscodecommand",
            "screenshotpage",
            "searchresults",
            "searchsubagent",
            "selection",
            "switchagent",
            "terminallastcommand",
            "terminalselection",
            "testfailure",
            "think",
            "toolsearch",
            "vscode",
            "vscodeapi",
        ],
        &[],
    ),
];

/// The sets that tools of the editor are in, which may stand before a tool's name.
const SETS: [&str; 15] = [
    "agent",
    "browser",
    "edit",
    "execute",
    "new",
    "read",
    "runcommands",
    "runnotebooks",
    "runtasks",
    "search",
    "shell",
    "todo",
    "todos",
    "vscode",
    "web",
];

/// The tools that a name stands for, which may be none; nothing when the name is not one of these.
pub(super) fn meaning(name: &str) -> Option<&'static [&'static str]> {
    let name = name.trim_start_matches('#').to_lowercase();
    let bare = match name.split_once('/') {
        Some((set, tool)) if SETS.contains(&set) => {
            if tool == "*" {
                set
            } else {
                tool
            }
        }
        Some(_) => return None,
        None => &name,
    };
    NAMES.iter().find(|(names, _)| names.contains(&bare)).map(|(_, tools)| *tools)
}

/// Whether a name begins with a set of the editor, so that it is not a server's.
pub(super) fn is_in_set(name: &str) -> bool {
    name.split_once('/').is_some_and(|(set, _)| SETS.contains(&set.to_lowercase().as_str()))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::{NAMES, meaning};
    use crate::tools::TOOLS;

    #[test]
    fn every_name_is_there_once_and_stands_for_tools_that_exist() {
        let mut seen = BTreeSet::new();
        for (names, tools) in NAMES {
            for name in *names {
                assert!(seen.insert(*name), "{name} is there twice");
                assert_eq!(*name, name.to_lowercase());
            }
            for tool in *tools {
                assert!(TOOLS.iter().any(|known| known.name == *tool), "{tool}");
            }
        }
    }

    #[test]
    fn names_may_have_their_set_before_them() {
        for (name, first) in [
            ("edit/editFiles", Some("edit")),
            ("search/codebase", Some("grep")),
            ("#codebase", Some("grep")),
            ("execute/runInTerminal", Some("bash")),
            ("runCommands/runInTerminal", Some("bash")),
            ("edit/*", Some("edit")),
            ("web/fetch", Some("webfetch")),
            ("vscode/runCommand", None),
        ] {
            let found = meaning(name).unwrap_or_else(|| panic!("{name} is unknown"));
            assert_eq!(found.first().copied(), first, "{name}");
        }
        for name in ["github/create_issue", "github/*", "edit/frobnicate", "playwright"] {
            assert_eq!(meaning(name), None, "{name}");
        }
    }
}
