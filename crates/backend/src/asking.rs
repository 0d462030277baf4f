//! Questions of one call, which are put to the user together.

use std::collections::BTreeMap;

use atomic_event::{Answer, Question, QuestionId, TurnEvent};

/// Questions of one call, and the answers so far.
pub(crate) struct Asking {
    /// The program's own id of the call.
    pub(crate) request: String,
    pub(crate) questions: Vec<Question>,
    /// By the place of the question.
    answers: BTreeMap<usize, Answer>,
}

impl Asking {
    pub(crate) fn new(request: String, questions: Vec<Question>) -> Self {
        Self { request, questions, answers: BTreeMap::new() }
    }

    fn id(&self, place: usize) -> QuestionId {
        QuestionId::from(format!("{}/{place}", self.request))
    }

    /// Keeps an answer; says whether the question was open.
    pub(crate) fn answer(&mut self, id: &QuestionId, answer: &Answer) -> bool {
        let is_it = |place: &usize| self.id(*place) == *id && !self.answers.contains_key(place);
        let Some(place) = (0..self.questions.len()).find(is_it) else { return false };
        self.answers.insert(place, answer.clone());
        true
    }

    pub(crate) fn events(&self) -> impl Iterator<Item = TurnEvent> {
        let last = self.questions.len().saturating_sub(1);
        let numbered = self.questions.iter().enumerate();
        numbered.map(move |(place, question)| TurnEvent::Asked {
            id: self.id(place),
            question: question.clone(),
            more: last - place,
        })
    }

    /// All questions with their answers, in order, when all are there.
    pub(crate) fn answered(&self) -> Option<Vec<(&Question, &Answer)>> {
        let answer = |(place, question)| Some((question, self.answers.get(&place)?));
        self.questions.iter().enumerate().map(answer).collect()
    }
}
