//! Nodes that wait for the user.
//!
//! A question is data, and so is known before it is asked. One that is written by a function, or
//! whose answer is made into changes, is therefore a row of nodes: `question-words` →
//! `question-ask` → `question-answer`. (What nodes inside return is seen outside as well, hence
//! the long names.)

use atomic_event::{Choice, Question, StepError, StepResult};
use atomic_graph::{FunctionId, Graph, Kind, code};
use serde_json::Value;

use super::Role;
use super::fields::Fields;
use super::json::Item;
use super::reader::{Reader, is_function};
use super::work::doing;
use crate::{Action, Asking, Call, Function};

/// The one option of a node that waits.
const CONTINUE: &str = "Continue";

/// The nodes of a question that is more than data.
const WORDS: &str = "question-words";
const ASK: &str = "question-ask";
const ANSWER: &str = "question-answer";

/// What a question is made of, besides the question.
#[derive(Default)]
struct Around {
    /// Writes it.
    words: Option<FunctionId>,
    /// Makes changes to the state out of the answer.
    map: Option<FunctionId>,
}

impl<'d> Reader<'d, '_, '_> {
    pub(super) fn wait(&mut self, fields: &mut Fields<'d>) -> Kind {
        let mut around = Around::default();
        let prompt = fields.need(&["prompt"], "what the user is told", &mut self.faults);
        let question = prompt.map(|prompt| self.asked_words(prompt, &mut around));
        around.map = self.answer_mapper(fields, &["inputMapper"]);
        let approved = fields.take("autoApprove").is_some_and(|item| self.flag(item));
        if approved {
            return self.without_asking(around);
        }
        let question = Question {
            question: question.unwrap_or_default(),
            options: vec![Choice { label: CONTINUE.to_owned(), description: String::new() }],
            free_text: true,
            ..Question::default()
        };
        self.asking(question, around)
    }

    pub(super) fn ask_user(&mut self, fields: &mut Fields<'d>) -> Kind {
        let mut around = Around::default();
        let question = fields.need(&["question"], "what to ask", &mut self.faults);
        let question = question.map(|item| self.asked_words(item, &mut around));
        let mut question =
            Question { question: question.unwrap_or_default(), ..Question::default() };
        if let Some(item) = fields.take("header") {
            question.header = self.words(item).unwrap_or_default().to_owned();
        }
        if let Some(item) = fields.take("options") {
            let options = self.list(item, "a list of options");
            question.options = options.iter().filter_map(|item| self.choice(item)).collect();
        }
        if let Some(item) = fields.take("multiSelect") {
            question.multi_select = self.flag(item);
        }
        if let Some(item) = fields.take("freeText") {
            question.free_text = self.flag(item);
        }
        around.map = self.answer_mapper(fields, &["inputMapper", "outputMapper"]);
        self.asking(question, around)
    }

    fn choice(&mut self, item: &'d Item) -> Option<Choice> {
        if item.as_text().is_some() {
            let label = self.name(item)?.to_owned();
            return Some(Choice { label, description: String::new() });
        }
        let mut fields = self.object(item, "an option")?;
        let label = fields.need(&["label"], "what is shown", &mut self.faults);
        let label = label.and_then(|label| self.name(label)).unwrap_or_default().to_owned();
        let description = fields.take("description").and_then(|item| self.words(item));
        fields.finish(&mut self.faults);
        Some(Choice { label, description: description.unwrap_or_default().to_owned() })
    }

    /// What is asked: a text, or what a function writes.
    fn asked_words(&mut self, item: &'d Item, around: &mut Around) -> String {
        if is_function(item) {
            let words = self.function(item, Role::Text);
            // One that nobody can evaluate is told of, and asks nothing.
            around.words = words.filter(|call| self.functions.find(call).is_some());
            let there = around.words.is_some();
            return if there { format!("{{outputs.{WORDS}}}") } else { String::new() };
        }
        self.words(item).unwrap_or_default().to_owned()
    }

    fn answer_mapper(
        &mut self,
        fields: &mut Fields<'d>,
        keys: &[&'static str],
    ) -> Option<FunctionId> {
        let item = fields.take_one_of(keys, &mut self.faults)?;
        self.function(item, Role::Map)
    }

    /// A question, with what is around it.
    fn asking(&mut self, question: Question, Around { words, map }: Around) -> Kind {
        let ask = Action::Ask(Asking { question });
        let words = words.and_then(|call| self.words_step(&call));
        let map = map.and_then(|call| self.answer_step(&call, None));
        if words.is_none() && map.is_none() {
            return doing(&ask);
        }
        let mut graph = Graph::starting_at(if words.is_some() { WORDS } else { ASK });
        if let Some(step) = words {
            graph = graph.node(Action::Function { call: step }.node(WORDS)).edge(WORDS, ASK);
        }
        graph = graph.node(ask.node(ASK));
        if let Some(step) = map {
            graph = graph.edge(ASK, ANSWER).node(Action::Function { call: step }.node(ANSWER));
        }
        Kind::Subgraph { graph, isolated: false, input: None, output: None }
    }

    /// A node that goes on without asking: the answer is to go on.
    fn without_asking(&mut self, around: Around) -> Kind {
        let call = around.map.and_then(|call| self.answer_step(&call, Some(CONTINUE)));
        let call = call.unwrap_or_else(|| {
            let go_on =
                |_: &Call<'_>| Ok(StepResult { output: CONTINUE.into(), ..StepResult::default() });
            self.own_function("approved", Function::step(go_on))
        });
        doing(&Action::Function { call })
    }

    /// The step that writes a question down.
    fn words_step(&mut self, call: &FunctionId) -> Option<FunctionId> {
        let Some(Function::Text(words)) = self.functions.find(call).cloned() else { return None };
        let step = Function::step(move |call| {
            Ok(StepResult { output: words(call)?.into(), ..StepResult::default() })
        });
        Some(self.own_function(&format!("words:{call}"), step))
    }

    /// The step that makes changes out of an answer.
    fn answer_step(&mut self, call: &FunctionId, given: Option<&str>) -> Option<FunctionId> {
        let Some(Function::Value(map)) = self.functions.find(call).cloned() else { return None };
        let given = given.map(Value::from);
        let name = call.to_string();
        let step = Function::step(move |call| {
            let answer = given.clone().unwrap_or_else(|| call.output(ASK));
            let changes = map(call, &[answer.clone().into()])?;
            let mut result = StepResult { output: answer, ..StepResult::default() };
            match changes {
                Value::Null => {}
                Value::Object(fields) => {
                    result.patch =
                        fields.into_iter().map(|(key, value)| (key.into(), value)).collect();
                }
                other
                @ (Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_)) => {
                    let message = format!("`{name}` returned {other}, not an object of changes");
                    return Err(StepError::new(code::FUNCTION, message));
                }
            }
            Ok(result)
        });
        Some(self.own_function(&format!("answer:{call}"), step))
    }
}
