//! What an action refers to, for the checks of a graph.

use std::collections::BTreeSet;

use atomic_graph::FunctionId;
use atomic_graph::check::{Use, UseKind};
use serde::Deserialize as _;
use serde_json::Value;

use crate::loops::is_judge;
use crate::shell::{Refusal, Used as Template, templates_in};
use crate::template::{Written, templates_in as templates_in_text};
use crate::{Action, EntryKind, TaskFileOp, Text};

/// The names an action uses, the nodes whose outputs its texts are filled with, and the keys of the
/// state it changes. What a function changes is not known before it runs. An action that cannot be read uses nothing.
pub fn names_used(action: &Value) -> Vec<Use> {
    let mut used = Used::default();
    match Action::deserialize(action) {
        Ok(Action::Agent(agent)) => {
            // One with its own instructions is not looked up.
            if agent.instructions.is_none() {
                used.add(UseKind::Agent, agent.agent.as_str());
            }
            used.text(&agent.prompt);
            used.functions([&agent.parse, &agent.map]);
        }
        Ok(Action::Function { call }) => {
            used.function(&call);
            if is_judge(&call) {
                // Every loop sets it, so that two loops that run at once replace it from two sides.
                used.add(UseKind::MayWrite, "iteration");
            }
        }
        Ok(Action::Shell(shell)) => {
            used.command(&shell.command);
            used.functions([&shell.map]);
        }
        Ok(Action::Entry(entry)) => {
            let kind = match entry.kind {
                EntryKind::Skill => UseKind::Skill,
                EntryKind::Command => UseKind::Command,
            };
            used.add(kind, &entry.name);
            used.text(&entry.args);
            used.functions([&entry.map]);
        }
        Ok(Action::TaskFile(file)) => {
            used.functions([&file.selector, &file.path_from]);
            used.add(UseKind::Writes, "tasks");
            if file.op == TaskFileOp::Next {
                used.add(UseKind::Writes, "tasksDone");
                // What else it says about the loop is changed with these.
                used.add(UseKind::MayWrite, "currentTask");
                used.add(UseKind::MayWrite, "iteration");
                TASK_KEYS.iter().for_each(|key| used.add(UseKind::Provides, key));
            }
        }
        Ok(Action::Ask(asking)) => used.template(&asking.question.question),
        // What a script calls is not known before it does.
        Ok(
            Action::Gates(_)
            | Action::ClearContext
            | Action::ContextMonitor(_)
            | Action::Called
            | Action::Sleep { .. }
            | Action::Request { .. },
        )
        | Err(_) => {}
    }
    used.0
}

/// Keys that a step of a file of tasks may change besides.
const TASK_KEYS: [&str; 4] =
    ["shouldContinue", "maxIterationsReached", "criteriaComplete", "updatedAt"];

#[derive(Default)]
struct Used(Vec<Use>);

impl Used {
    fn add(&mut self, kind: UseKind, name: &str) {
        self.0.push(Use::new(kind, name));
    }

    fn function(&mut self, function: &FunctionId) {
        self.add(UseKind::Function, function.as_str());
    }

    fn functions<const N: usize>(&mut self, functions: [&Option<FunctionId>; N]) {
        functions.into_iter().flatten().for_each(|function| self.function(function));
    }

    fn text(&mut self, text: &Text) {
        match text {
            Text::Call(function) => self.add(UseKind::TextFunction, function.as_str()),
            Text::Template(template) => self.template(template),
            Text::Verbatim(_) => {}
        }
    }

    /// The text of a shell command, in which not every place takes a template.
    fn command(&mut self, text: &Text) {
        let Text::Template(template) = text else { return self.text(text) };
        let mut seen = BTreeSet::new();
        for Template { key, refusal, is_needed } in templates_in(template) {
            if !seen.insert((key, is_needed, refusal.map(|refusal| refusal.place))) {
                continue;
            }
            if let Some(node) = key.strip_prefix("outputs.").and_then(|rest| rest.split('.').next())
            {
                self.add(UseKind::Output { is_needed }, node);
            } else if is_needed {
                self.add(UseKind::Template { in_command: true }, key);
            }
            if let Some(Refusal { place, hint, always }) = refusal {
                self.add(UseKind::UnsafeTemplate { place, hint, always: *always }, key);
            }
        }
    }

    fn template(&mut self, template: &str) {
        let mut seen = BTreeSet::new();
        for Written { key, is_file, is_optional, .. } in templates_in_text(template) {
            if !seen.insert((key, is_file, is_optional)) {
                continue;
            }
            match key.strip_prefix("outputs.").and_then(|rest| rest.split('.').next()) {
                Some(node) if !is_file => {
                    self.add(UseKind::Output { is_needed: !is_optional }, node);
                }
                _ if is_file => {
                    self.add(UseKind::Template { in_command: false }, &format!("file:{key}"));
                }
                _ if !is_optional => self.add(UseKind::Template { in_command: false }, key),
                _ => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::names_used;

    fn shown(action: &Value) -> String {
        let names = names_used(action);
        let names: Vec<_> =
            names.iter().map(|used| format!("{:?} {}", used.kind, used.name)).collect();
        names.join(", ")
    }

    #[test]
    fn every_name_of_an_action_is_found() {
        let table = [
            (
                json!({"do": "agent", "agent": "worker", "prompt": {"call": "w/1"}, "parse": "w/2",
                    "map": "w/3"}),
                "Agent worker, TextFunction w/1, Function w/2, Function w/3",
            ),
            (
                json!({"do": "agent", "agent": "me", "instructions": "", "prompt": {"template": "x"}}),
                "",
            ),
            (json!({"do": "function", "call": "w/1"}), "Function w/1"),
            (
                json!({"do": "function", "call": "w/:judge-criteria:one"}),
                "Function w/:judge-criteria:one, MayWrite iteration",
            ),
            (
                json!({"do": "function", "call": "w/criteria-loop/judge-criteria/execute"}),
                "Function w/criteria-loop/judge-criteria/execute, MayWrite iteration",
            ),
            (
                json!({"do": "shell", "command": {"call": "w/1"}, "map": "w/2"}),
                "TextFunction w/1, Function w/2",
            ),
            (
                json!({"do": "entry", "kind": "skill", "name": "commit", "args": {"template": ""}}),
                "Skill commit",
            ),
            (
                json!({"do": "entry", "kind": "command", "name": "log", "args": {"call": "w/1"}}),
                "Command log, TextFunction w/1",
            ),
            (
                json!({"do": "task_file", "path": "t.json", "op": "next", "selector": "w/1"}),
                "Function w/1, Writes tasks, Writes tasksDone, MayWrite currentTask, MayWrite iteration, \
                 Provides shouldContinue, Provides maxIterationsReached, Provides criteriaComplete, \
                 Provides updatedAt",
            ),
            (json!({"do": "task_file", "path": "t.json", "op": "complete"}), "Writes tasks"),
            (
                json!({"do": "shell", "command": {"template": "echo {outputs.a} {b} {outputs.c.d}"}}),
                "Output { is_needed: true } a, Template { in_command: true } b, Output { is_needed: true } c",
            ),
            (
                json!({"do": "shell", "command": {"template": "cat {file:outputs.a.b} ${outputs.c}"}}),
                "Output { is_needed: true } a",
            ),
            (json!({"do": "shell", "command": {"verbatim": "eval {outputs.a}"}}), ""),
            (
                json!({"do": "ask", "question": {"question": "{outputs.a}?", "options": []}}),
                "Output { is_needed: true } a",
            ),
            (
                json!({"do": "ask", "question": {"question": "{a.b} {c?} \\{d} ${e} {file:f} {g h}",
                    "options": []}}),
                "Template { in_command: false } a.b, Template { in_command: false } file:f",
            ),
            (
                json!({"do": "shell", "command": {"template":
                    "awk '{print}' f; curl -w '%{http_code}' {url}; echo {x?} \\{y}"}}),
                "UnsafeTemplate { place: \"in the program text of an interpreter (`python -c`, `awk`, \
                 `sed`, …)\", hint: \"pass the value as an argument behind the program text, or as a \
                 variable of the program (awk -v name={key})\", always: false } print, \
                 Template { in_command: true } url",
            ),
            (json!({"do": "clear_context"}), ""),
            (json!({"do": "gates"}), ""),
            (json!(null), ""),
        ];
        for (action, expected) in table {
            assert_eq!(shown(&action), expected, "{action}");
        }
    }
}
