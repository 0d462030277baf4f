//! Answering questions at the terminal.

use std::io::BufRead as _;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use atomic_event::{Answer, Event, Intent, Question, QuestionId};
use tokio::sync::mpsc;

use crate::commands::run::somebody_is_there;
use crate::paint;

/// The questions that are open, oldest first.
pub(super) type Open = Arc<Mutex<Vec<(QuestionId, Question)>>>;

/// No questions yet; where somebody is there, answers are read from now on.
pub(super) fn open(intents: mpsc::Sender<Intent>) -> Open {
    open_if_somebody(intents).0
}

/// The same, and whether answers are read.
pub(super) fn open_if_somebody(intents: mpsc::Sender<Intent>) -> (Open, bool) {
    let open = Open::default();
    let is_listening = somebody_is_there(&crate::args::OutputArgs::default());
    if is_listening {
        listen(Open::clone(&open), intents);
    }
    (open, is_listening)
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

/// How long to wait for more where the input has ended: on a terminal there can be more, but one
/// that is gone says at once that there is nothing.
const PAUSE_AT_END: Duration = Duration::from_millis(200);

/// Reads answers from the terminal for as long as the program runs.
fn listen(open: Open, intents: mpsc::Sender<Intent>) {
    std::thread::spawn(move || {
        let (mut line, mut ends) = (vec![], 0);
        loop {
            if ends > 1 {
                std::thread::sleep(PAUSE_AT_END);
            }
            line.clear();
            let Ok(length) = std::io::stdin().lock().read_until(b'\n', &mut line) else { return };
            ends = if length == 0 { ends.min(1) + 1 } else { 0 };
            let first = open.lock().unwrap_or_else(PoisonError::into_inner).first().cloned();
            let wish = match first {
                None => continue,
                Some((id, _)) if length == 0 => {
                    let reason = format!("the input ended (Ctrl+D) while question {id} was open");
                    Intent::Pause { reason }
                }
                Some((id, question)) => match answer(&question, &String::from_utf8_lossy(&line)) {
                    Ok(answer) => {
                        let mut open = open.lock().unwrap_or_else(PoisonError::into_inner);
                        open.retain(|(other, _)| *other != id);
                        Intent::Answer { question: id, answer }
                    }
                    Err(problem) => {
                        let again = format!("{problem}; please answer again:");
                        paint::line(&paint::printable(&again));
                        continue;
                    }
                },
            };
            let is_end = matches!(wish, Intent::Pause { .. });
            if intents.blocking_send(wish).is_err() || is_end {
                return;
            }
        }
    });
}

/// What a line answers. Commas part what is chosen only where all parts are options: there can be
/// commas in a label, and in what people say in their own words.
fn answer(question: &Question, line: &str) -> Result<Answer, String> {
    let line = line.trim();
    let whole = [line.to_owned()];
    let options_only = Question { free_text: false, ..question.clone() };
    if question.multi_select && options_only.accept(&whole).is_err() {
        let parts = line.split(',').map(str::trim).filter(|part| !part.is_empty());
        let parts: Vec<String> = parts.map(str::to_owned).collect();
        if let Ok(answer) = options_only.accept(&parts) {
            return Ok(answer);
        }
    }
    question.accept(&whole)
}

#[cfg(test)]
mod tests {
    use atomic_event::{Choice, Question, QuestionId};

    use super::super::question_text;
    use super::answer;

    fn question(multi_select: bool, free_text: bool) -> Question {
        let options = ["Red", "Blue, dark", "Green"]
            .map(|label| Choice { label: label.to_owned(), description: String::new() });
        Question { options: options.into(), multi_select, free_text, ..Question::default() }
    }

    #[test]
    fn commas_part_options_and_nothing_else() {
        let several = question(true, true);
        let table: [(&str, &[&str]); 8] = [
            ("1,3\n", &["Red", "Green"]),
            ("red, green", &["Red", "Green"]),
            ("1,2,", &["Red", "Blue, dark"]),
            ("Blue, dark", &["Blue, dark"]),
            ("2", &["Blue, dark"]),
            ("Red, or rather  pink", &["Red, or rather  pink"]),
            ("1,9", &["1,9"]),
            ("well, none", &["well, none"]),
        ];
        for (line, chosen) in table {
            assert_eq!(answer(&several, line).unwrap().chosen, chosen, "{line}");
        }
        assert!(answer(&several, " \n").is_err() && answer(&several, ",").is_ok());
    }

    #[test]
    fn how_to_choose_several_is_said() {
        let text = |several| question_text(&QuestionId::from("q1"), &question(several, true));
        assert!(text(true).contains("\n  (several: 1,3)\n"), "{}", text(true));
        assert!(!text(false).contains("several"), "{}", text(false));
    }

    #[test]
    fn where_only_options_count_nothing_else_is_taken() {
        let several = question(true, false);
        assert_eq!(answer(&several, "3,1").unwrap().chosen, ["Green", "Red"]);
        assert!(answer(&several, "Red, pink").is_err());
        let one = question(false, true);
        assert_eq!(answer(&one, "Blue, dark\n").unwrap().chosen, ["Blue, dark"]);
        assert_eq!(answer(&one, "1,3").unwrap().chosen, ["1,3"]);
    }
}
