//! Pictures of graphs: Mermaid, Graphviz dot, SVG, and a tree for the terminal.
//!
//! All of them show the same: every node of a graph and of the graphs inside its nodes, where
//! each begins and ends, and every way a run may take from one node to another. With an
//! [`Overlay`] they show a run: how each node stands, how often it was visited, how long it took.

mod colour;
mod dot;
mod mermaid;
mod overlay;
mod picture;
mod regions;
mod svg;
#[cfg(test)]
mod tests;
mod tree;
mod words;

pub use dot::dot;
pub use mermaid::mermaid;
pub use overlay::{Mark, Overlay, Status};
pub use svg::svg;
pub use tree::{Role, Span, TreeLine, tree};
