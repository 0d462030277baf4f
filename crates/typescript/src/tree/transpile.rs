//! From TypeScript to JavaScript, with the way back.

use std::path::Path;

use oxc_allocator::Allocator;
use oxc_codegen::{Codegen, CodegenOptions, CommentOptions};
use oxc_semantic::SemanticBuilder;
use oxc_transformer::{TransformOptions, Transformer};

use super::calls::CallSite;
use super::exports::{Exports, Requests};
use super::{calls, deep, exports, parse};
use crate::fault::{Fault, Page};
use crate::text;

/// A file that can be run.
#[derive(Debug)]
pub(crate) struct Module {
    pub(crate) code: String,
    pub(crate) map: Map,
    pub(crate) exports: Exports,
    pub(crate) requests: Requests,
    pub(crate) calls: Vec<CallSite>,
}

/// From places in the code that runs to places in the file.
#[derive(Debug, Default)]
pub(crate) struct Map {
    /// Line and column there, line and column in the file; all from 0, in order.
    tokens: Vec<[u32; 4]>,
}

impl Map {
    /// The place in the file, both as people count.
    pub(crate) fn original(&self, source: &str, line: u32, column: u32) -> Option<(u32, u32)> {
        let sought = [line.checked_sub(1)?, column.saturating_sub(1)];
        let after = self.tokens.partition_point(|token| token[..2] <= sought[..]);
        let token = self.tokens.get(after.checked_sub(1)?)?;
        let line = token[2] + 1;
        Some((line, text::column_of_units(source, line, token[3])))
    }
}

/// Parses, checks and strips a file. It recurses: see [`deep::run`].
///
/// # Errors
/// All that is wrong with it by itself.
pub(crate) fn transpile(file: &Path, text: &str) -> Result<Module, Vec<Fault>> {
    let page = Page { file, text };
    deep::check(page)?;
    let allocator = Allocator::default();
    let mut program = parse(&allocator, page)?;
    let checked = SemanticBuilder::new()
        .with_check_syntax_error(true)
        .with_enum_eval(true)
        .with_excess_capacity(2.0)
        .build(&program);
    if checked.diagnostics.has_errors() {
        return Err(checked.diagnostics.errors().map(|said| page.said("ATM702", said)).collect());
    }
    let scoping = checked.semantic.into_scoping();
    // Only types go: the engine runs ES2024 as it is, so nothing is lowered, and no file of
    // helpers is ever imported.
    let options = TransformOptions::default();
    let done =
        Transformer::new(&allocator, file, &options).build_with_scoping(scoping, &mut program);
    if done.diagnostics.has_errors() {
        return Err(done.diagnostics.errors().map(|said| page.said("ATM702", said)).collect());
    }
    let printed = Codegen::new()
        .with_options(CodegenOptions {
            source_map_path: Some(file.to_owned()),
            comments: CommentOptions::disabled(),
            ..CodegenOptions::default()
        })
        .with_source_text(text)
        .build(&program);
    let mut map = Map::default();
    if let Some(printed) = &printed.map {
        map.tokens = printed
            .get_tokens()
            .map(|token| {
                let there = [token.get_dst_line(), token.get_dst_col()];
                [there[0], there[1], token.get_src_line(), token.get_src_col()]
            })
            .collect();
        map.tokens.sort_unstable();
    }
    let (exports, requests) = exports::read(&program);
    let calls = calls::read(&program);
    Ok(Module { code: printed.code, map, exports, requests, calls })
}
