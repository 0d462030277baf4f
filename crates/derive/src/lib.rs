//! Derives the typed keys of a workflow's state.

mod attributes;
mod expand;
mod rename;

use proc_macro::TokenStream;

/// Gives a struct with named fields a typed key per field: `Plan::FINDINGS` for `findings`.
///
/// | attribute of a field | meaning |
/// |---|---|
/// | `#[state(reducer = "concat")]` | how changes meet what is there: `replace`, `concat`, `merge`, `mergeById`, `max`, `min`, `sum`, `or`, `and`, `ifDefined` |
/// | `#[state(merge_by = "name")]` | as `mergeById`, by another field of the rows |
/// | `#[state(reduce_with = path)]` | a function `fn(Option<T>, T) -> T` combines the two |
/// | `#[state(default = expression)]` | what a run begins with; otherwise `Default::default()` |
/// | `#[serde(rename = "…")]`, on the struct `#[serde(rename_all = "…")]` | the key in the JSON |
#[proc_macro_derive(StateKeys, attributes(state, serde))]
pub fn derive_state_keys(input: TokenStream) -> TokenStream {
    let input = syn::parse_macro_input!(input as syn::DeriveInput);
    expand::state_keys(&input).unwrap_or_else(|problem| problem.to_compile_error()).into()
}
