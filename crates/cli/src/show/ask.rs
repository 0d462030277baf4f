//! Answering questions at the terminal.

use std::io::BufRead as _;
use std::sync::{Arc, Mutex, PoisonError};

use atomic_event::{Intent, Question, QuestionId};
use tokio::sync::mpsc;

use crate::paint;

/// The questions that are open, oldest first.
pub(super) type Open = Arc<Mutex<Vec<(QuestionId, Question)>>>;

/// Reads answers from the terminal for as long as the program runs.
pub(super) fn listen(open: Open, intents: mpsc::Sender<Intent>) {
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
