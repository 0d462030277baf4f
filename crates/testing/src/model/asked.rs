//! What a request asks, whatever the API it was written for.

use serde_json::Value;

/// One request, borrowed from its body.
#[derive(Debug, Default)]
pub(super) struct Asked<'a> {
    /// The model's name.
    pub(super) model: &'a str,
    /// Whether the answer is to be streamed.
    pub(super) stream: bool,
    /// What the model is told to be, in pieces.
    pub(super) system: Vec<&'a str>,
    /// The names of the tools on offer.
    pub(super) tools: Vec<&'a str>,
    /// Everything that was said, in order.
    pub(super) messages: Vec<Said<'a>>,
    /// How long the body is, in bytes.
    pub(super) size: usize,
}

/// One message of the user or of the model.
#[derive(Debug)]
pub(super) struct Said<'a> {
    /// Whether the model said it.
    pub(super) by_model: bool,
    /// Its texts.
    pub(super) texts: Vec<&'a str>,
    /// The texts of the results of tools in it.
    pub(super) results: Vec<&'a str>,
}

/// What is taken from the conversation to find a reply.
#[derive(Debug)]
pub(super) struct Situation {
    /// The last text of the user.
    pub(super) user: String,
    /// How often the model spoke since.
    pub(super) step: usize,
    /// The results that came since the model last spoke.
    pub(super) result: String,
}

impl Asked<'_> {
    /// Where the conversation stands.
    ///
    /// A message is the user's if something is left of its texts without the reminders that
    /// programs put between; results of tools are no texts.
    pub(super) fn situation(&self) -> Situation {
        let mut user = String::new();
        let mut step = 0;
        for message in self.messages.iter().rev() {
            if message.by_model {
                step += 1;
                continue;
            }
            user = own_text(&message.texts);
            if !user.is_empty() {
                break;
            }
        }
        let newest = self.messages.iter().rev().take_while(|message| !message.by_model);
        let newest: Vec<_> = newest.collect();
        let results: Vec<&str> =
            newest.iter().rev().flat_map(|message| message.results.iter().copied()).collect();
        Situation { user, step, result: results.join("\n") }
    }

    /// The folder the program says it works in.
    pub(super) fn workspace(&self) -> Option<&str> {
        let texts = self.messages.iter().flat_map(|message| message.texts.iter());
        let paths = self.system.iter().chain(texts).flat_map(|text| {
            let after = text.split("orking directory: ").skip(1);
            after.filter_map(|rest| rest.lines().next()).map(str::trim)
        });
        paths.into_iter().find(|path| path.starts_with('/'))
    }
}

/// Texts without reminders, joined.
fn own_text(texts: &[&str]) -> String {
    let mut own = String::new();
    for text in texts {
        let text = without_reminders(text);
        let text = text.trim();
        if !text.is_empty() {
            if !own.is_empty() {
                own.push('\n');
            }
            own.push_str(text);
        }
    }
    own
}

/// Without what programs put into the texts of users.
fn without_reminders(text: &str) -> String {
    let text = without(text, "<system-reminder>", "</system-reminder>");
    without(&text, "<current_datetime>", "</current_datetime>")
}

fn without(text: &str, open: &str, close: &str) -> String {
    let mut kept = String::new();
    let mut rest = text;
    while let Some((before, inside)) = rest.split_once(open) {
        kept.push_str(before);
        match inside.split_once(close) {
            Some((_, after)) => rest = after,
            None => return kept,
        }
    }
    kept.push_str(rest);
    kept
}

/// The text at a key, or none.
pub(super) fn text_at<'a>(value: &'a Value, key: &str) -> &'a str {
    value.get(key).and_then(Value::as_str).unwrap_or_default()
}

/// The list at a key, or an empty one.
pub(super) fn list_at<'a>(value: &'a Value, key: &str) -> &'a [Value] {
    value.get(key).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// Whether the answer to a body is to be streamed: all APIs say it alike.
pub(super) fn is_streamed(body: &Value) -> bool {
    body.get("stream").and_then(Value::as_bool).unwrap_or_default()
}

/// The texts of a content, which is a text or a list of parts, whatever the API calls those.
pub(super) fn texts_of(content: Option<&Value>) -> Vec<&str> {
    let is_text =
        |part: &&Value| matches!(text_at(part, "type"), "text" | "input_text" | "output_text");
    match content {
        Some(Value::String(text)) => vec![text],
        Some(Value::Array(parts)) => {
            parts.iter().filter(is_text).map(|part| text_at(part, "text")).collect()
        }
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::{Asked, Said};

    fn said<'a>(by_model: bool, texts: &[&'a str], results: &[&'a str]) -> Said<'a> {
        Said { by_model, texts: texts.to_vec(), results: results.to_vec() }
    }

    #[test]
    fn the_last_text_of_the_user_is_not_a_reminder_and_not_a_result() {
        let reminder = "<system-reminder>be kind</system-reminder>";
        let asked = Asked {
            messages: vec![
                said(false, &["first"], &[]),
                said(true, &["ok"], &[]),
                said(false, &[reminder, "  second <system-reminder>x</system-reminder>"], &[]),
                said(true, &[], &[]),
                said(false, &[reminder], &["one"]),
                said(true, &[], &[]),
                said(false, &[], &["two"]),
                said(false, &[reminder], &["three"]),
            ],
            ..Asked::default()
        };
        let situation = asked.situation();
        assert_eq!(situation.user, "second");
        assert_eq!(situation.step, 2);
        assert_eq!(situation.result, "two\nthree");
    }

    #[test]
    fn a_text_beside_results_is_the_users() {
        let asked = Asked {
            messages: vec![
                said(false, &["first"], &[]),
                said(true, &[], &[]),
                said(false, &["wait, do this"], &["one"]),
            ],
            ..Asked::default()
        };
        let situation = asked.situation();
        assert_eq!(situation.user, "wait, do this");
        assert_eq!(situation.step, 0);
        assert_eq!(situation.result, "one");
    }

    #[test]
    fn nobody_spoke_yet() {
        let situation = Asked::default().situation();
        assert_eq!((situation.user.as_str(), situation.step), ("", 0));
    }

    #[test]
    fn a_reminder_without_an_end_reaches_to_the_end() {
        let messages = vec![said(false, &["text <system-reminder>cut"], &[])];
        assert_eq!(Asked { messages, ..Asked::default() }.situation().user, "text");
    }

    #[test]
    fn the_workspace_is_the_first_absolute_path_that_is_called_one() {
        let system = vec!["The working directory: persists. Working directory: /a b/c \ny"];
        let asked = Asked { system, ..Asked::default() };
        assert_eq!(asked.workspace(), Some("/a b/c"));
        assert_eq!(Asked::default().workspace(), None);
    }
}
