//! `atomic answer`: leave an answer for a session, whoever holds it.

use std::path::Path;
use std::process::ExitCode;

use atomic_event::{Event, Question, QuestionId};
use atomic_files::shell_quoted;
use atomic_session::{InboxAnswer, Session, leave_answer};

use super::resume::{Wanted, refuse_renamed, refuse_strangers, resume_in};
use crate::args::AnswerArgs;
use crate::failure::Failure;
use crate::settings::{self, SettingsArgs};
use crate::{paint, show, stage};

pub(crate) fn answer(args: &AnswerArgs) -> Result<ExitCode, Failure> {
    let words: Vec<String> = args.answer.iter().map(|word| shell_quoted(Path::new(word))).collect();
    let command = format!("atomic answer {{}} {}", words.join(" "));
    let found = super::find_session(&args.session, args.place, &command)?;
    let flags = SettingsArgs::trusting(args.trust);
    let given = settings::for_resume(&flags)?;
    refuse_strangers(&found.dir, &given, "answer", &args.answer)?;
    refuse_completed(&found.dir)?;
    let open = open_questions(&found.dir)?;
    let (id, question, words) = choose(&open, &args.answer)?;
    let accepted = question.accept(words).map_err(|problem| {
        Failure::Usage(format!("{problem}\n\n{}", show::question_text(id, question)))
    })?;
    // A new session is made of the one in a copy only for an answer that counts.
    let found = super::fork::own(found)?;
    let dir = found.dir.clone();
    refuse_renamed(&dir, &super::resume::first_fact(&dir)?.session)?;
    let disk = stage::disk();
    // By its id, so that it can never be taken for the answer to another question.
    let left = InboxAnswer { question: Some(id.clone()), given: accepted.chosen.clone() };
    leave_answer(disk.as_ref(), &dir, &left)?;
    let say = |text: &str| {
        if !args.output.for_programs() {
            paint::line(&paint::printable(text));
        }
    };
    say(&format!("Answered {id}: {}", accepted.text()));
    let is_held = Session::holder(disk.as_ref(), &dir)?.is_some();
    if is_held || !args.resume {
        let own = super::resume::first_fact(&dir)?.workspace;
        super::tell_folder(found.workspace.as_deref().unwrap_or(&own));
    }
    if is_held {
        say("The session is running and takes the answer up.");
        return Ok(ExitCode::SUCCESS);
    }
    if args.resume {
        return resume_in(found, Wanted::default(), &flags, &args.output);
    }
    let session = dir.file_name().unwrap_or_default().to_string_lossy().into_owned();
    say(&format!("Nobody works on the session. Continue with: atomic resume {session}"));
    Ok(ExitCode::SUCCESS)
}

/// Nobody would ever look for an answer to a session that is completed.
fn refuse_completed(dir: &Path) -> Result<(), Failure> {
    match super::resume::completed(dir)? {
        None => Ok(()),
        Some(_) => {
            Err(Failure::Failed("the session has no open question: it is completed".to_owned()))
        }
    }
}

/// The questions nobody has answered, oldest first.
pub(crate) fn open_questions(dir: &Path) -> Result<Vec<(QuestionId, Question)>, Failure> {
    let mut open = vec![];
    for fact in Session::read_only(stage::disk(), dir)? {
        let event = fact?.event;
        if let Event::StepFinished { step, .. }
        | Event::StepFailed { step, .. }
        | Event::StepCancelled { step, .. } = &event
        {
            open.retain(|(_, asker, _)| asker != step);
        } else if let Event::QuestionAnswered(answered) = &event {
            open.retain(|(id, _, _)| *id != answered.id);
        } else if let Event::QuestionAsked { id, step, question, .. } = event {
            open.push((id, step, question));
        }
    }
    Ok(open.into_iter().map(|(id, _, question)| (id, question)).collect())
}

/// Which question is meant, and what is left as the answer.
fn choose<'a>(
    open: &'a [(QuestionId, Question)],
    given: &'a [String],
) -> Result<(&'a QuestionId, &'a Question, &'a [String]), Failure> {
    let named = given.split_first().and_then(|(first, rest)| {
        let (id, question) = open.iter().find(|(id, _)| id.as_str() == first.as_str())?;
        (!rest.is_empty()).then_some((id, question, rest))
    });
    match (named, open) {
        (Some(chosen), _) => Ok(chosen),
        (None, [(id, question)]) => Ok((id, question, given)),
        (None, []) => Err(Failure::Failed("the session has no open question".to_owned())),
        (None, several) => {
            let texts: Vec<_> = several.iter().map(|(id, q)| show::question_text(id, q)).collect();
            Err(Failure::Usage(format!(
                "several questions are open; name the one you answer first\n\n{}",
                texts.join("\n\n")
            )))
        }
    }
}
