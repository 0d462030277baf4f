//! What a provider's API must be able to do, and the ones there are.

use std::borrow::Cow;

use hyper::Method;
use serde_json::Value;

use super::answer::Answer;
use super::anthropic::Anthropic;
use super::asked::Asked;
use super::openai::{Completions, Responses};
use super::script::{Action, ApiError, Reply};

/// How requests and replies are written in one provider's API.
pub(super) trait Dialect: Sync {
    /// Whether a model is asked something here.
    fn converses(&self, method: &Method, path: &str) -> bool;

    /// The answer to what programs want besides, for a body of so many bytes.
    fn aside(&self, method: &Method, path: &str, size: usize) -> Option<Answer>;

    /// Reads what is asked.
    fn read<'a>(&self, body: &'a Value, size: usize) -> Asked<'a>;

    /// Writes a reply that does not end in an error.
    fn write(&self, spoken: &Spoken<'_>, asked: &Asked<'_>) -> Answer;

    /// Writes an error.
    fn refuse(&self, error: &ApiError) -> Answer;
}

/// A reply whose placeholders are replaced.
pub(super) struct Spoken<'a> {
    /// Its parts.
    pub(super) parts: Vec<Action>,
    /// How it is sent.
    pub(super) reply: Cow<'a, Reply>,
}

/// The one that is spoken where nothing else is said.
pub(super) const FIRST: &dyn Dialect = &Anthropic;

/// All of them.
pub(super) const ALL: &[&dyn Dialect] = &[FIRST, &Completions, &Responses];
