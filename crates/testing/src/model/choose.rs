//! Which reply a request is given.

use super::asked::{Asked, Situation};
use super::script::{Reply, Script, Turn};

/// What was found for a request.
#[derive(Debug, PartialEq)]
pub(super) enum Found<'a> {
    /// This reply of this turn.
    Reply {
        /// The place of the turn in the script, from 0.
        turn: usize,
        /// The reply.
        reply: &'a Reply,
    },
    /// A turn fits that has nothing to say at this step.
    OutOfReplies {
        /// The place of the turn in the script, from 0.
        turn: usize,
    },
    /// No turn fits.
    Nothing,
}

impl Script {
    /// The reply of the first turn that fits.
    pub(super) fn choose(&self, asked: &Asked<'_>, situation: &Situation) -> Found<'_> {
        let fits = |(_, turn): &(usize, &Turn)| turn.fits(asked, situation);
        let Some((place, turn)) = self.turns.iter().enumerate().find(fits) else {
            return Found::Nothing;
        };
        let due = situation.step.checked_sub(turn.step).and_then(|step| turn.replies.get(step));
        let last_text = || turn.replies.iter().rev().find(|reply| reply.is_repeatable());
        match due.or_else(last_text) {
            Some(reply) => Found::Reply { turn: place, reply },
            None => Found::OutOfReplies { turn: place },
        }
    }
}

impl Turn {
    fn fits(&self, asked: &Asked<'_>, situation: &Situation) -> bool {
        let in_system = |part: &String| asked.system.iter().any(|text| text.contains(part));
        let in_history = |part: &String| {
            let mut texts = asked.messages.iter().filter(|message| !message.by_model);
            texts.any(|message| message.texts.iter().any(|text| text.contains(part)))
        };
        self.step <= situation.step
            && self.stream.is_none_or(|wanted| wanted == asked.stream)
            && self.model.as_ref().is_none_or(|part| asked.model.contains(part))
            && (!self.no_tools || asked.tools.is_empty())
            && self.tools.iter().all(|tool| asked.tools.contains(&tool.as_str()))
            && self.user.iter().all(|part| situation.user.contains(part))
            && !self.absent.iter().any(|part| situation.user.contains(part))
            && self.result.iter().all(|part| situation.result.contains(part))
            && self.system.iter().all(in_system)
            && self.history.iter().all(in_history)
    }
}

#[cfg(test)]
mod tests {
    use super::Found;
    use crate::model::asked::{Asked, Said};
    use crate::model::script::{Reply, Script, Turn};
    use serde_json::json;

    /// Whether a turn with these conditions fits the request below.
    fn fits(conditions: &str) -> bool {
        let text = format!("[[turn]]\n{conditions}\n[[turn.reply]]\ndo = [{{ say = \"x\" }}]");
        let script = Script::parse(&text).expect("a script");
        let said = |by_model, texts: &[&'static str], results: &[&'static str]| Said {
            by_model,
            texts: texts.to_vec(),
            results: results.to_vec(),
        };
        let asked = Asked {
            model: "claude-opus-5",
            stream: true,
            system: vec!["You are an agent", "# Environment"],
            tools: vec!["Bash", "Write"],
            messages: vec![
                said(false, &["<system-reminder>rules</system-reminder>", "earlier words"], &[]),
                said(true, &["the model's words"], &[]),
                said(false, &["build it now"], &[]),
                said(true, &[], &[]),
                said(false, &[], &["old result"]),
                said(true, &[], &[]),
                said(false, &[], &["new result"]),
            ],
            size: 0,
        };
        script.choose(&asked, &asked.situation()) != Found::Nothing
    }

    #[test]
    fn conditions() {
        for (conditions, expected) in [
            ("", true),
            ("user = ['build', 'now']", true),
            ("user = ['build', 'then']", false),
            ("user = ['earlier']", false),
            ("absent = ['then']", true),
            ("absent = ['then', 'now']", false),
            ("system = ['agent', 'Environment']", true),
            ("system = ['agent', 'nothing']", false),
            ("model = 'opus'", true),
            ("model = 'haiku'", false),
            ("tools = ['Write', 'Bash']", true),
            ("tools = ['Wri']", false),
            ("no_tools = true", false),
            ("no_tools = false", true),
            ("history = ['earlier', 'build']", true),
            ("history = ['rules']", true),
            ("history = [\"the model's\"]", false),
            ("result = ['new']", true),
            ("result = ['old']", false),
            ("step = 2", true),
            ("step = 3", false),
            ("stream = true", true),
            ("stream = false", false),
        ] {
            assert_eq!(fits(conditions), expected, "{conditions}");
        }
    }

    #[test]
    fn replies_by_step() {
        let call = Reply::call("Bash", json!({}));
        let script = Script::new()
            .with(Turn::default().user("calls").reply(call.clone()))
            .with(Turn { step: 1, ..Turn::default() }.user("later").reply(call.clone()))
            .with(Turn::default().reply(call).reply(Reply::say("done")).reply(Reply::error(500)));
        for (user, step, expected) in [
            ("calls", 0, "0 call"),
            ("calls", 1, "0 out"),
            ("later", 0, "2 call"),
            ("later", 1, "1 call"),
            ("any", 0, "2 call"),
            ("any", 1, "2 text"),
            ("any", 2, "2 error"),
            ("any", 3, "2 text"),
            ("any", 30, "2 text"),
        ] {
            let mut messages = vec![Said { by_model: false, texts: vec![user], results: vec![] }];
            let spoken = || Said { by_model: true, texts: vec![], results: vec![] };
            messages.extend((0..step).map(|_| spoken()));
            let asked = Asked { messages, ..Asked::default() };
            let found = match script.choose(&asked, &asked.situation()) {
                Found::Reply { turn, reply } if reply.is_repeatable() => format!("{turn} text"),
                Found::Reply { turn, reply } if reply.actions.is_empty() => format!("{turn} error"),
                Found::Reply { turn, .. } => format!("{turn} call"),
                Found::OutOfReplies { turn } => format!("{turn} out"),
                Found::Nothing => "nothing".to_owned(),
            };
            assert_eq!(found, expected, "{user} {step}");
        }
    }

    #[test]
    fn no_tools_fits_a_request_without_tools() {
        let turn = Turn { no_tools: true, ..Turn::default() }.reply(Reply::say("x"));
        let script = Script::new().with(turn);
        let asked = Asked::default();
        assert_ne!(script.choose(&asked, &asked.situation()), Found::Nothing);
    }
}
