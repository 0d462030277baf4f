//! Answering questions at the terminal.

use std::io::BufRead as _;
use std::sync::{Arc, Mutex, PoisonError};

use atomic_event::{Event, Intent, Question, QuestionId};
use tokio::sync::mpsc;

use crate::commands::run::somebody_is_there;
use crate::paint;

/// The questions that are open, oldest first.
pub(super) type Open = Arc<Mutex<Vec<(QuestionId, Question)>>>;

/// No questions yet; where somebody is there, answers are read from now on.
pub(super) fn open(intents: mpsc::Sender<Intent>) -> Open {
    let open = Open::default();
    if somebody_is_there(&crate::args::OutputArgs::default()) {
        listen(Open::clone(&open), intents);
    }
    open
}

/// Takes in what a fact says about questions.
pub(super) fn note(open: &Open, event: &Event) {
    let mut open = open.lock().unwrap_or_else(PoisonError::into_inner);
    if let Event::QuestionAsked { id, question, .. } = event {
        open.push((id.clone(), question.clone()));
    } else if let Event::QuestionAnswered(answered) = event {
        open.retain(|(id, _)| *id != answered.id);
    }
}

/// Reads answers from the terminal for as long as the program runs.
fn listen(open: Open, intents: mpsc::Sender<Intent>) {
    std::thread::spawn(move || {
        for line in std::io::stdin().lock().lines() {
            let Ok(line) = line else { return };
            let first = open.lock().unwrap_or_else(PoisonError::into_inner).first().cloned();
            let Some((id, question)) = first else { continue };
            let given: Vec<String> = if question.multi_select {
                line.split(',').map(|part| part.trim().to_owned()).collect()
            } else {
                vec![line]
            };
            match question.accept(&given) {
                Ok(answer) => {
                    open.lock().unwrap_or_else(PoisonError::into_inner).retain(|(o, _)| *o != id);
                    if intents.blocking_send(Intent::Answer { question: id, answer }).is_err() {
                        return;
                    }
                }
                Err(problem) => {
                    paint::line(&paint::printable(&format!("{problem}; please answer again:")));
                }
            }
        }
    });
}
