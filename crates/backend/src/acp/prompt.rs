//! What is sent: the prompt as it is, and around it what the protocol has no place for. No IO.

use agent_client_protocol::v1::schema::{ContentBlock, TextContent};
use serde_json::Value;

/// What stands in front of a prompt that would otherwise be taken for a command.
const WORD_FOR_WORD: &str = "The message, word for word:\n";

/// What is sent with a prompt.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Around<'a> {
    /// What the agent is told to be, when it has to be told.
    pub(super) instructions: Option<&'a str>,
    /// What its answer has to be.
    pub(super) schema: Option<&'a Value>,
}

/// A prompt with what is around it, each a block of its own.
pub(super) fn blocks(prompt: &str, around: Around<'_>) -> Vec<ContentBlock> {
    let mut texts = vec![];
    if let Some(instructions) = around.instructions.filter(|text| !text.trim().is_empty()) {
        texts.push(format!(
            "Follow these instructions from now on, in place of any that were given this way \
             before:\n\n<instructions>\n{}\n</instructions>\n\nThe message that they are for:\n",
            instructions.trim()
        ));
    } else if prompt.trim_start().starts_with('/') {
        texts.push(WORD_FOR_WORD.to_owned());
    }
    texts.push(prompt.to_owned());
    if let Some(schema) = around.schema {
        texts.push(format!(
            "\n\nYour last message has to be one JSON value, without any other text and without a \
             code block around it, that fits this JSON Schema:\n{schema}"
        ));
    }
    texts.into_iter().map(|text| ContentBlock::Text(TextContent::new(text))).collect()
}

/// A command of the agent's own.
pub(super) fn command(name: &str) -> Vec<ContentBlock> {
    vec![ContentBlock::Text(TextContent::new(format!("/{name}")))]
}

/// The value in a text that was asked to be one: models put it into a block of code all the same.
pub(super) fn without_fence(text: &str) -> &str {
    let trimmed = text.trim();
    let inner = trimmed.strip_prefix("```").and_then(|rest| rest.strip_suffix("```"));
    let inner = inner.and_then(|inner| inner.split_once('\n')).map(|(_, inner)| inner.trim());
    inner.unwrap_or(text)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{Around, blocks, without_fence};

    fn texts(prompt: &str, around: Around<'_>) -> Vec<String> {
        let blocks = serde_json::to_value(blocks(prompt, around)).unwrap();
        let text = |block: &serde_json::Value| block["text"].as_str().unwrap().to_owned();
        blocks.as_array().unwrap().iter().map(text).collect()
    }

    #[test]
    fn a_prompt_is_a_block_of_its_own_and_no_command() {
        let plain = Around::default();
        assert_eq!(texts("go /on", plain), ["go /on"]);
        for command in ["/help", " /help", "\n/help"] {
            let sent = texts(command, plain);
            assert_eq!(sent.last().unwrap(), command);
            assert!(sent.len() == 2 && !sent[0].trim_start().starts_with('/'), "{sent:?}");
        }
        let schema = json!({ "type": "object" });
        let around = Around { instructions: Some("/be kind"), schema: Some(&schema) };
        let sent = texts("/go", around);
        assert!(sent[0].contains("<instructions>\n/be kind\n</instructions>"), "{sent:?}");
        assert_eq!(sent[1], "/go");
        assert!(sent[2].contains(r#"{"type":"object"}"#), "{sent:?}");
    }

    #[test]
    fn a_fence_is_taken_away() {
        for (text, value) in [
            ("```json\n{\"a\": 1}\n```", "{\"a\": 1}"),
            ("\n```\n[1]\n```\n", "[1]"),
            ("{\"a\": 1}", "{\"a\": 1}"),
            ("Here:\n```json\n1\n```", "Here:\n```json\n1\n```"),
            ("``` x ```", "``` x ```"),
        ] {
            assert_eq!(without_fence(text), value, "{text:?}");
        }
    }
}
