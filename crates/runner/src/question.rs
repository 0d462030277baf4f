//! Questions: asked once, answered once, delivered once, whoever asks and whoever answers.

use std::collections::VecDeque;
use std::sync::Arc;

use atomic_event::{
    Answer, Answered, AnsweredBy, Choice, Envelope, Event, Question, QuestionId, StepError, StepId,
    StepResult,
};
use atomic_graph::{Input, Signal};
use atomic_workflow::Action;
use serde::Deserialize as _;
use serde_json::json;
use tokio::sync::oneshot;

use crate::book::{Asked, Book};
use crate::front::Shown;
use crate::perform::Live;
use crate::run::{Run, RunError};
use crate::settings::OnQuestion;

const RUN_AGAIN: &str = "Run it again";
const GIVE_UP: &str = "Treat it as failed";

/// An answer and the agent that waits for it.
pub(crate) type Reply = (oneshot::Sender<Answer>, Answer);

/// What to ask about a step that was cut off and may have had effects.
pub(crate) fn about_lost(step: &StepId) -> Question {
    let option = |label: &str, description: &str| Choice {
        label: label.to_owned(),
        description: description.to_owned(),
    };
    Question {
        question: format!("{step} was cut off and may have done part of its work. What now?"),
        header: "Cut off".to_owned(),
        options: vec![
            option(RUN_AGAIN, "Do the step again from its start"),
            option(GIVE_UP, "Go on as if it had failed"),
        ],
        ..Question::default()
    }
}

/// What the machine has to know about an answer: whether a lost step is run again, or what a
/// step that is done wanted to know.
pub(crate) fn answer_to_machine(book: &Book, event: &Event) -> Option<Input> {
    let Event::QuestionAnswered(answered) = event else { return None };
    let asked = book.questions.get(&answered.id)?;
    let step = asked.step.clone();
    if asked.about_lost {
        let again = answered.answer.chosen.iter().any(|label| label == RUN_AGAIN);
        return Some(Input::Settled { step, again });
    }
    let answer = result_of(&asked.question, &answered.answer).output;
    asked.by_signal.then_some(Input::Answered { step, answer })
}

/// Who asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Asker {
    /// A node of the workflow, or an agent.
    Node,
    /// A step that is done, by a signal.
    Signal,
}

/// What a step that is done wants to know: its message, and in its data what a question can have.
pub(crate) fn of_signal(signal: &Signal) -> Question {
    let mut question: Question = Question::deserialize(&signal.data).unwrap_or_default();
    if let Some(message) = &signal.message {
        question.question.clone_from(message);
    }
    if question.question.is_empty() {
        "The workflow waits for you. What should it know?".clone_into(&mut question.question);
    }
    question
}

/// What a question of the workflow returns: the label or text, or a list where several may be
/// picked.
pub(crate) fn result_of(question: &Question, answer: &Answer) -> StepResult {
    let several = question.multi_select;
    StepResult::output(if several { json!(answer.chosen) } else { json!(answer.text()) })
}

/// Why a step that asks has failed when questions are not allowed.
pub(crate) fn nobody_there() -> StepError {
    StepError::new("question", "it asks a question, and nobody is there to answer")
}

impl Run {
    /// The name of the next question; those in `events` are asked already.
    pub(crate) fn next_question<'e>(
        &self,
        events: impl IntoIterator<Item = &'e Event>,
    ) -> QuestionId {
        let asked = events.into_iter().filter(|e| matches!(e, Event::QuestionAsked { .. })).count();
        QuestionId::from(format!("q{}", self.book.asked_so_far + asked as u64 + 1))
    }

    /// The facts of a question, and of its answer when a policy gives it.
    pub(crate) fn asked(
        &self,
        id: &QuestionId,
        step: &StepId,
        question: Question,
        asker: Asker,
    ) -> Vec<Event> {
        let recommended = question.recommended().map(|choice| choice.label.clone());
        let policy = recommended.filter(|_| self.settings.on_question == OnQuestion::Recommended);
        let (id, step) = (id.clone(), step.clone());
        let by_signal = asker == Asker::Signal;
        let asked =
            Event::QuestionAsked { id: id.clone(), step, question, about_lost: false, by_signal };
        let answer = policy.map(|label| {
            let answer = Answer { chosen: vec![label] };
            Event::QuestionAnswered(Answered { id, answer, by: AnsweredBy::Policy })
        });
        std::iter::once(asked).chain(answer).collect()
    }

    /// A question of an agent that waits for the answer.
    pub(crate) fn asked_by_agent(
        &mut self,
        step: &StepId,
        question: Question,
        reply: oneshot::Sender<Answer>,
        events: &mut Vec<Event>,
    ) {
        let id = self.next_question(&*events);
        events.extend(self.asked(&id, step, question, Asker::Node));
        // Otherwise `reply` is dropped, which tells the agent that there will be no answer.
        if self.settings.on_question != OnQuestion::Fail
            && let Some(live) = self.crew.live.get_mut(step)
        {
            live.asks.insert(id, reply);
        }
    }

    /// Nobody is there any more who could be asked.
    pub(crate) fn leave_questions(&mut self) {
        if self.settings.on_question == OnQuestion::Ask {
            self.settings.on_question = OnQuestion::Pause;
        }
    }

    /// Whether nothing can go on before a question is answered, and nobody is there to do it.
    pub(crate) fn can_only_wait(&self) -> bool {
        self.settings.on_question != OnQuestion::Ask
            && !self.book.unanswered().is_empty()
            && self.crew.live.values().all(Live::only_waits)
            && !self.has_hope()
            && !self.timers.run_goes_on(|step| self.book.open.contains_key(step))
    }

    /// An answer from a person; one to a question that is not open any more is not taken.
    pub(crate) fn answered_by_person(
        &mut self,
        id: &QuestionId,
        answer: Answer,
    ) -> Result<(), RunError> {
        let known = self.book.questions.get(id);
        if known.is_none_or(|asked| asked.answer.is_some()) {
            return Ok(());
        }
        let answered = Answered { id: id.clone(), answer, by: AnsweredBy::Person };
        self.record(vec![Event::QuestionAnswered(answered)], vec![])
    }

    /// How an answer reaches the one who asked: to an agent that waits it is given once it is on
    /// disk; to one that is gone, as the next message of its conversation.
    pub(crate) fn deliver(
        &mut self,
        id: &QuestionId,
        queue: &mut VecDeque<Event>,
        replies: &mut Vec<Reply>,
    ) {
        let Some(asked) = self.book.questions.get(id).cloned() else { return };
        let Some(answer) = asked.answer else { return };
        let step = asked.step;
        let reply = self.crew.live.get_mut(&step).and_then(|live| live.asks.remove(id));
        let open = self.book.open.get(&step).map(|open| open.attempt);
        let delivered = |live: bool| Event::AnswerDelivered { id: id.clone(), live };
        match (reply, open) {
            (Some(reply), _) => {
                queue.push_back(delivered(true));
                replies.push((reply, answer));
            }
            (None, _) if asked.about_lost || asked.by_signal => queue.push_back(delivered(true)),
            (None, Some(attempt)) if self.is_ask_node(&step) => {
                let result = result_of(&asked.question, &answer);
                queue.push_back(delivered(true));
                queue.push_back(Event::StepFinished { step, attempt, result, commit: None });
            }
            // It asked several things, and goes on when it can be told all of them.
            (None, Some(_)) if self.book.waits(&step) => {}
            (None, Some(attempt)) => {
                let reason = "it was waiting for an answer".to_owned();
                let untold = self.book.questions.iter();
                let untold = untold.filter(|(_, a)| a.step == step && !a.delivered);
                queue.extend(
                    untold.map(|(id, _)| Event::AnswerDelivered { id: id.clone(), live: false }),
                );
                queue.push_back(Event::StepLost { step, attempt, progressed: true, reason });
            }
            (None, None) => {}
        }
    }

    pub(crate) fn is_ask_node(&self, step: &StepId) -> bool {
        matches!(self.action(step), Ok(Action::Ask(_)))
    }

    /// Takes in the answers that were left for us. An inbox that cannot be read is no reason to
    /// stop a run; one that cannot be recorded is.
    pub(crate) fn look_into_inbox(&mut self) -> Result<(), RunError> {
        let answers = match self.session.inbox() {
            Ok(answers) => answers,
            Err(error) => {
                self.complain(&error.to_string());
                return Ok(());
            }
        };
        for (name, left) in answers {
            // One that cannot be read was put aside already.
            let given = match left {
                Ok(given) => given,
                Err(problem) => {
                    self.complain(&problem);
                    continue;
                }
            };
            match self.accept(given.question.as_ref(), &given.given) {
                Ok((id, answer)) => self.answered_by_person(&id, answer)?,
                Err(problem) => self.complain(&format!("an answer was not taken: {problem}")),
            }
            // Only now: the answer is in the journal, so a crash before this loses nothing.
            if let Err(error) = self.session.clear_inbox(&name) {
                self.complain(&error.to_string());
            }
        }
        Ok(())
    }

    /// Open questions of a session that is taken up again: a policy may answer them now, or
    /// somebody is there who has to see them.
    pub(crate) fn bring_up_questions(&mut self) -> Vec<Event> {
        let open: Vec<_> = self.book.unanswered();
        let open: Vec<_> =
            open.into_iter().map(|(id, asked)| (id.clone(), asked.clone())).collect();
        let mut answers = vec![];
        for (id, asked) in open {
            let recommended = asked.question.recommended().map(|choice| choice.label.clone());
            if self.settings.on_question == OnQuestion::Ask {
                self.show_again(&id, &asked);
            } else if self.settings.on_question == OnQuestion::Recommended
                && let Some(label) = recommended
            {
                let answer = Answer { chosen: vec![label] };
                let by = AnsweredBy::Policy;
                answers.push(Event::QuestionAnswered(Answered { id, answer, by }));
            } else if self.settings.on_question == OnQuestion::Fail
                && let Some(open) = self.book.open.get(&asked.step).filter(|_| !asked.about_lost)
            {
                let (step, attempt) = (asked.step, open.attempt);
                answers.push(Event::StepFailed { step, attempt, error: nobody_there() });
            }
        }
        answers
    }

    fn show_again(&self, id: &QuestionId, asked: &Asked) {
        let event = Event::QuestionAsked {
            id: id.clone(),
            step: asked.step.clone(),
            question: asked.question.clone(),
            about_lost: asked.about_lost,
            by_signal: asked.by_signal,
        };
        let at = self.stage.clock.now();
        let envelope = Envelope { seq: self.session.seq(), at, event };
        self.front.show(Shown::Fact(Arc::new(envelope)));
    }

    fn accept(
        &self,
        question: Option<&QuestionId>,
        given: &[String],
    ) -> Result<(QuestionId, Answer), String> {
        let open = self.book.unanswered();
        let meant = match question {
            Some(id) => open.iter().find(|(open, _)| *open == id),
            None => open.first(),
        };
        let (id, asked) = meant.ok_or_else(|| "there is no such open question".to_owned())?;
        Ok(((*id).clone(), asked.question.accept(given)?))
    }

    pub(crate) fn complain(&self, text: &str) {
        // A log is not worth failing for.
        let _ = self.session.log_error(text, self.stage.clock.now());
    }
}
