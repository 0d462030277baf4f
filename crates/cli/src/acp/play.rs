//! A run that is seen through.

use std::collections::VecDeque;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use agent_client_protocol::Error;
use agent_client_protocol::v1::schema::StopReason;
use atomic_acp::{Narrator, Seen, Voice, plan_of_tasks};
use atomic_event::{Event, Intent, Question, QuestionId};
use atomic_runner::{Ended, Outcome, Show, Shown};
use serde_json::Value;
use tokio::sync::mpsc;

use super::ask::{Line, Put};
use super::record::Note;
use super::seat::{Mind, Orders, Seat};
use super::start::Begun;
use super::trouble;
use crate::commands::resume::{Finished, is_one_turn};
use crate::show::{LastWords, check_lines, last_words, proper_name, question_text};

/// Everything around a run.
pub(super) struct Player<'p> {
    pub(super) seat: &'p Seat,
    pub(super) line: &'p Line,
    pub(super) orders: Orders,
    /// What begins the names of tool calls, so that no two turns have the same.
    pub(super) prefix: String,
}

/// What is going on in a run.
struct Playing<'p> {
    player: &'p Player<'p>,
    narrator: Narrator,
    dir: PathBuf,
    /// The task list as it was told last.
    tasks: Vec<Value>,
    /// What is still to be asked; the first is being asked.
    questions: VecDeque<(QuestionId, Question)>,
    intents: mpsc::Sender<Intent>,
    /// Whether nobody is there to answer any more.
    has_left: bool,
}

impl Player<'_> {
    /// Carries a run to its end, its pause, or its wait for an answer. What one agent said is given
    /// back.
    pub(super) async fn see_through(
        &self,
        begun: Begun,
        mind: &mut Mind,
    ) -> Result<(StopReason, Option<String>), Error> {
        let Begun { run, show, name, is_one_turn, is_new, folder } = begun;
        let voice = if is_one_turn { Voice::Agent } else { Voice::Workflow };
        let dir = run.dir().to_owned();
        self.seat.note(Note::Ran { dir: dir.clone() });
        self.seat.runs(&name);
        (mind.unfinished, mind.last) = (None, Some(dir.clone()));
        if !is_one_turn {
            let verb = if is_new { "Started" } else { "Resumed" };
            let session = run.session();
            self.line.say(&format!("{verb} {} session: {session}", proper_name(&name)));
        }
        if let Some(why) = show.unlisted() {
            self.line.say(&format!("Note: this session is not in the list of sessions: {why}"));
        }
        let (intents, wishes) = mpsc::channel(16);
        let driven = tokio::spawn(run.drive(wishes));
        let narrator = Narrator::new(voice, &folder, &self.prefix, look).after(mind.spent);
        let (tasks, questions) = (vec![], VecDeque::new());
        let mut playing =
            Playing { player: self, narrator, dir, tasks, questions, intents, has_left: false };
        playing.follow(show, self.orders.clone()).await;
        mind.spent = playing.narrator.spent_so_far();
        let ended = driven.await.map_err(|error| trouble::failed(error.to_string()))?;
        let ended = ended.map_err(|error| trouble::failed(error.to_string()))?;
        self.tell_end(&ended, &name, is_one_turn);
        let said = last_words(&ended.dir).text.filter(|_| is_one_turn);
        let is_stopped = self.orders.is_stopped();
        match &ended.outcome {
            _ if is_stopped => Ok((StopReason::Cancelled, said)),
            Outcome::Failed { error, .. } if is_one_turn && error.code == "refused" => {
                Ok((StopReason::Refusal, said))
            }
            Outcome::Failed { error, .. } if is_one_turn => Err(trouble::of_step(error)),
            Outcome::Failed { .. } | Outcome::Completed | Outcome::Waiting(_) | Outcome::Paused => {
                Ok((StopReason::EndTurn, said))
            }
        }
    }

    /// Tells the result of a session that was completed before.
    pub(super) fn tell_result(&self, finished: &Finished) {
        let Finished { created, ended, .. } = finished;
        let is_one_turn = is_one_turn(created);
        if is_one_turn && let Some(text) = last_words(&ended.dir).text {
            self.line.say(&text);
        }
        self.tell_end(ended, created.workflow.as_str(), is_one_turn);
    }

    /// The last words of a run.
    fn tell_end(&self, ended: &Ended, workflow: &str, is_one_turn: bool) {
        let (name, session) = (proper_name(workflow), &ended.session);
        let resume = match workflow {
            "ralph" => format!("Resume with: /ralph --resume {session}"),
            _ => format!("Resume with: /resume {session}"),
        };
        let say = |text: &str| self.line.say(text);
        if let Some(tasks) = told_tasks(&ended.dir) {
            say(&tasks);
        }
        match &ended.outcome {
            Outcome::Completed if is_one_turn => {}
            Outcome::Completed => {
                let LastWords { text, result } = last_words(&ended.dir);
                if let Some(text) = text {
                    say(&text);
                }
                say(&format!("Completed {name} session: {session}"));
                if let Some(result) = result {
                    say(&result);
                }
                let lines = check_lines(ended);
                if !lines.is_empty() {
                    say(&lines.join("\n"));
                }
            }
            Outcome::Failed { .. } if is_one_turn => say(&resume),
            Outcome::Failed { error, .. } => {
                say(&format!("Failed {name} session: {session}\n\n{}\n\n{resume}", error.message));
            }
            Outcome::Waiting(questions) => {
                for (id, question) in questions {
                    say(&question_text(id, question));
                }
                say(&format!(
                    "Waiting {name} session: {session}\n\nAnswer with: `atomic answer {session} \
                     <answer>`\n\n{resume}"
                ));
            }
            Outcome::Paused => say(&format!("Paused {name} session: {session}\n\n{resume}")),
        }
    }
}

impl Playing<'_> {
    /// Tells what happens until nothing does any more.
    async fn follow(&mut self, mut show: Show, mut orders: Orders) {
        let mut is_pausing = false;
        loop {
            let Player { line, prefix, .. } = self.player;
            let asked = self.questions.front().filter(|_| !self.has_left).cloned();
            let asking = async {
                match &asked {
                    Some((id, question)) => line.ask(&format!("{prefix}{id}"), question).await,
                    None => std::future::pending().await,
                }
            };
            tokio::pin!(asking);
            // Until the question changes, what is being asked goes on being asked.
            let put = loop {
                tokio::select! {
                    biased;
                    () = orders.stop(), if !is_pausing => {
                        is_pausing = true;
                        let reason = orders.why().to_owned();
                        let _ = self.intents.send(Intent::Pause { reason }).await;
                        break None;
                    }
                    shown = show.next() => {
                        let Some(shown) = shown else { return };
                        self.tell(&shown);
                        if self.questions.front() != asked.as_ref() {
                            break None;
                        }
                    }
                    put = &mut asking, if !is_pausing => break Some(put),
                }
            };
            if let (Some(put), Some((id, _))) = (put, &asked) {
                self.answered(id.clone(), put).await;
            }
        }
    }

    async fn answered(&mut self, question: QuestionId, put: Put) {
        let intent = match put {
            Put::Answered(answer) => {
                self.questions.retain(|(id, _)| *id != question);
                Intent::Answer { question, answer }
            }
            // The run goes on with what can go on, and waits.
            Put::Impossible | Put::Left => {
                self.has_left = true;
                Intent::Leave
            }
        };
        let _ = self.intents.send(intent).await;
    }

    fn tell(&mut self, shown: &Shown) {
        let line = self.player.line;
        match shown {
            Shown::Delta(delta) => line.show_all(self.narrator.delta(delta)),
            Shown::Fact(fact) => {
                self.note_questions(&fact.event);
                line.show_all(self.narrator.fact(&fact.event));
                if !matches!(fact.event, Event::StepReported { .. }) {
                    self.tell_tasks();
                }
            }
            Shown::Streamed { .. } => {}
        }
    }

    fn note_questions(&mut self, event: &Event) {
        if let Event::QuestionAsked { id, question, .. } = event {
            if self.questions.iter().all(|(known, _)| known != id) {
                self.questions.push_back((id.clone(), question.clone()));
            }
        } else if let Event::QuestionAnswered(answered) = event {
            self.questions.retain(|(id, _)| *id != answered.id);
        }
    }

    /// The file of tasks is written before anything acts on it.
    fn tell_tasks(&mut self) {
        let tasks = tasks(&self.dir);
        if tasks != self.tasks {
            self.player.line.show(plan_of_tasks(&tasks));
            self.tasks = tasks;
        }
    }
}

/// How many tasks are done, and what became of the others.
fn summary(tasks: &[Value]) -> Option<String> {
    let field = |task: &Value, key: &str| {
        task.get(key).and_then(Value::as_str).unwrap_or_default().to_owned()
    };
    let (done, open): (Vec<_>, Vec<_>) =
        tasks.iter().partition(|task| field(task, "status") == "completed");
    let mut lines = vec![format!("{} of {} tasks are completed.", done.len(), tasks.len())];
    lines.extend(open.iter().map(|task| {
        let status = field(task, "status").replace('_', " ");
        let error = field(task, "error");
        let why = if error.is_empty() { String::new() } else { format!(" ({})", first(&error)) };
        format!("- {} {}: {status}{why}", field(task, "id"), field(task, "content"))
    }));
    (!tasks.is_empty()).then(|| lines.join("\n"))
}

/// The same of a session's file.
pub(super) fn told_tasks(dir: &Path) -> Option<String> {
    summary(&tasks(dir))
}

fn first(text: &str) -> &str {
    text.lines().next().unwrap_or_default()
}

fn tasks(dir: &Path) -> Vec<Value> {
    atomic_session::read_tasks(crate::stage::disk().as_ref(), dir).unwrap_or_default()
}

/// The largest file of which a change is shown, in bytes.
const LARGEST: u64 = 256 * 1024;

/// What is in a file that an agent changes.
pub(super) fn look(path: &Path) -> Seen {
    match atomic_files::read_text(path, LARGEST) {
        Ok(text) => Seen::Text(text),
        Err(error) if error.kind() == ErrorKind::NotFound => Seen::Nothing,
        Err(_) => Seen::Unknown,
    }
}

/// Does something that waits for disks and for code where that holds nobody up.
pub(super) async fn apart<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Error> {
    tokio::task::spawn_blocking(work).await.map_err(|error| trouble::failed(error.to_string()))
}
