//! What models say so that an agent does what a scenario wants, in the words of its program.

use std::num::NonZeroUsize;

use atomic_testing::conformance::backend::{Act, Failure, Scenario};
use atomic_testing::model::{Action, ApiError, Ending, Reply, Script, Turn, Usage};
use serde_json::{Value, json};

/// How the tools of a program are called.
pub(super) trait Tongue {
    /// What ends a sentence a program asks for a summary with.
    const SUMMARY: &str;
    const MODELS: [&str; 2];

    fn run(command: &str) -> Reply;
    fn read(path: &str) -> Reply;
    fn write(path: &str, text: &str) -> Reply;
    fn use_server() -> Reply;
    /// Asks these; several options can be chosen where it says so.
    fn ask(questions: &[(&str, bool)]) -> Reply;
    /// Asks one question by a tool that helpers have, too.
    fn ask_in_acts() -> Reply {
        Self::ask(&[(Scenario::QUESTION, false)])
    }
    fn help(prompt: &str) -> Reply;
    /// Gives the structure that is asked for, and ends the turn.
    fn structure(turn: Turn) -> Turn {
        turn.reply(Reply::call("StructuredOutput", Scenario::structure())).reply(say())
    }
    /// Notes what it means to do in a list of its own.
    fn note(turn: Turn) -> Turn;
    /// A reply that makes the turn fail.
    fn fail(failure: Failure) -> Reply;
}

/// The script of a scenario.
pub(super) fn script<T: Tongue>(scenario: &Scenario) -> Script {
    let turn = Turn::default();
    let turn = match scenario {
        Scenario::Text | Scenario::NotInstalled | Scenario::TooOld => turn.reply(say()),
        Scenario::EndlessText => turn.reply(Reply { ending: Ending::Hang, ..say() }),
        Scenario::Hang => turn.reply(Reply { ending: Ending::Hang, ..Reply::default() }),
        Scenario::Silence => turn.reply(Reply::default()),
        Scenario::Acts(acts) => return acting::<T>(Script::new(), turn, acts, say()),
        Scenario::Thought => {
            let think = Action::Think(Scenario::THOUGHT.to_owned());
            turn.reply(Reply { actions: [vec![think], say().actions].concat(), ..say() })
        }
        Scenario::Todos => T::note(turn).reply(say()),
        Scenario::Question => {
            turn.reply(T::ask(&[(Scenario::QUESTION, false)])).reply(Reply::say("It is: {result}"))
        }
        Scenario::Questions => turn
            .reply(T::ask(&[(Scenario::QUESTION, false), (Scenario::OTHER_QUESTION, true)]))
            .reply(Reply::say("They are: {result}")),
        Scenario::Models => {
            let model = |name: &str| Turn { model: Some(name.to_owned()), ..Turn::default() };
            return Script::new()
                .with(model(T::MODELS[0]).reply(say()))
                .with(model(T::MODELS[1]).reply(Reply::say(Scenario::OTHER_TEXT)));
        }
        Scenario::Spends => turn.reply(Reply { usage: spending(), ..say() }),
        Scenario::Summary => {
            let summary = format!("<summary>{}</summary>", Scenario::SUMMARY);
            let wanted = Turn::default().user(T::SUMMARY);
            return Script::new().with(wanted.reply(Reply::say(&summary))).with(turn.reply(say()));
        }
        Scenario::Structure => {
            let good = T::structure(Turn::default().user(Scenario::ALPHA));
            return Script::new().with(good).with(turn.reply(say()));
        }
        Scenario::FailureThenText(failure) => {
            // Two prompts without an answer between them are one to the model.
            let texts = Turn::default().user(Scenario::BETA).reply(say());
            return Script::new().with(texts).with(turn.reply(T::fail(*failure)));
        }
        Scenario::Two => {
            let other = Reply { chunk: NonZeroUsize::new(5), ..Reply::say(Scenario::OTHER_TEXT) };
            return Script::new()
                .with(Turn::default().user(Scenario::ALPHA).reply(say()))
                .with(Turn::default().user(Scenario::BETA).reply(other));
        }
        Scenario::Failure(failure) => turn.reply(T::fail(*failure)),
    };
    Script::new().with(turn)
}

fn say() -> Reply {
    Reply { chunk: NonZeroUsize::new(7), ..Reply::say(Scenario::TEXT) }
}

/// Of what is read, some is new, some comes from the cache, and some goes there.
fn spending() -> Usage {
    let (cache_read, cache_write) = (500, 200);
    Usage {
        input: Some(Scenario::READ - cache_read - cache_write),
        output: Some(Scenario::WRITTEN),
        cache_read: Some(cache_read),
        cache_write: Some(cache_write),
    }
}

/// A turn that does these and ends with a reply; those of its helpers come before it.
fn acting<T: Tongue>(mut script: Script, mut turn: Turn, acts: &[Act], last: Reply) -> Script {
    for act in acts {
        turn = turn.reply(match act {
            Act::Run(command) => T::run(command),
            Act::Read(path) => T::read(path),
            Act::Write { path, text } => T::write(path, text),
            Act::UseServer => T::use_server(),
            Act::Ask => T::ask_in_acts(),
            Act::Help { prompt, acts } => {
                let helping = Turn::default().user(prompt);
                script = acting::<T>(script, helping, acts, Reply::say(Scenario::OTHER_TEXT));
                T::help(prompt)
            }
        });
    }
    script.with(turn.reply(last))
}

/// Questions, with the key that says whether several options can be chosen.
pub(super) fn questions(asked: &[(&str, bool)], several: &str) -> Value {
    let question = |(text, many): &(&str, bool)| {
        let options =
            Scenario::OPTIONS.map(|label| json!({ "label": label, "description": label }));
        json!({ "question": text, "header": "Choice", several: many, "options": options })
    };
    json!({ "questions": asked.iter().map(question).collect::<Vec<_>>() })
}

/// A reply that is an error.
pub(super) fn error(status: u16, message: Option<&str>) -> Reply {
    let message = message.map(str::to_owned);
    let error = ApiError { status, kind: None, message, retry_after: None };
    Reply { ending: Ending::Error(error), ..Reply::default() }
}
