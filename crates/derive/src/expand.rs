//! The code that is made.

use std::collections::BTreeMap;

use proc_macro2::TokenStream;
use quote::{format_ident, quote, quote_spanned};
use syn::ext::IdentExt as _;
use syn::spanned::Spanned as _;
use syn::{Data, DeriveInput, Error, Field, Fields, Result};

use crate::attributes::{FieldOptions, rename_all};
use crate::rename::Rename;

/// The engine keeps what nodes return under this key.
const RESERVED: &str = "outputs";

pub(crate) fn state_keys(input: &DeriveInput) -> Result<TokenStream> {
    if let Some(parameter) = input.generics.params.first() {
        let message = "a state has no parameters: its keys are constants";
        return Err(Error::new_spanned(parameter, message));
    }
    let named = match &input.data {
        Data::Struct(data) => match &data.fields {
            Fields::Named(fields) => Some(&fields.named),
            Fields::Unnamed(_) | Fields::Unit => None,
        },
        Data::Enum(_) | Data::Union(_) => None,
    };
    let Some(fields) = named else {
        let message = "a state is a struct with named fields, one for each key";
        return Err(Error::new_spanned(&input.ident, message));
    };
    let rename = rename_all(&input.attrs)?;
    let mut keys = BTreeMap::new();
    let mut consts = Vec::new();
    let mut list = Vec::new();
    let mut problems: Option<Error> = None;
    for field in fields {
        match key(input, field, rename) {
            Ok(key) => {
                if let Some(other) = keys.insert(key.name.clone(), key.constant.clone()) {
                    let message = format!("`{other}` is already the key `{}`", key.name);
                    note(&mut problems, Error::new_spanned(field, message));
                }
                consts.push(key.definition);
                list.push(key.field);
            }
            Err(problem) => note(&mut problems, problem),
        }
    }
    if let Some(problems) = problems {
        return Err(problems);
    }
    let name = &input.ident;
    let idents = fields.iter().filter_map(|field| field.ident.as_ref());
    Ok(quote! {
        // Usually nobody makes a value of it, and its fields are not dead for that.
        const _: fn(&#name) = |state| {
            #(let _ = &state.#idents;)*
        };

        impl #name {
            #(#consts)*
        }

        impl ::atomic_workflow::StateKeys for #name {
            fn fields() -> ::std::vec::Vec<::atomic_workflow::Field> {
                ::std::vec![#(#list),*]
            }
        }
    })
}

fn note(problems: &mut Option<Error>, problem: Error) {
    match problems {
        Some(problems) => problems.combine(problem),
        None => *problems = Some(problem),
    }
}

/// One key: its name, its constant, and the code for both.
struct KeyCode {
    name: String,
    constant: String,
    definition: TokenStream,
    field: TokenStream,
}

fn key(input: &DeriveInput, field: &Field, rename: Rename) -> Result<KeyCode> {
    let Some(ident) = &field.ident else {
        return Err(Error::new_spanned(field, "a key of the state has a name"));
    };
    let options = FieldOptions::read(&field.attrs)?;
    let plain = ident.unraw().to_string();
    let name = options.rename.unwrap_or_else(|| rename(&plain));
    if name == RESERVED {
        let message = "the key `outputs` belongs to the engine, which keeps there what nodes \
                       return; give this one another name";
        return Err(Error::new_spanned(ident, message));
    }
    let (state, vis, kind) = (&input.ident, &input.vis, &field.ty);
    let constant = format_ident!("{}", plain.to_uppercase(), span = ident.span());
    let doc = format!("The key `{name}`.");
    let definition = quote! {
        #[doc = #doc]
        #vis const #constant: ::atomic_workflow::TypedKey<#state, #kind> =
            ::atomic_workflow::TypedKey::new(#name);
    };
    let default = match &options.default {
        Some(default) => quote!(#default),
        None => quote_spanned!(kind.span()=> <#kind as ::std::default::Default>::default()),
    };
    let reduce = options.reduce.map(|reduce| quote!(.reduced(#reduce)));
    let field = quote! {
        ::atomic_workflow::Field::new::<#kind>(#name, &#default)#reduce
    };
    Ok(KeyCode { name, constant: constant.to_string(), definition, field })
}

#[cfg(test)]
mod tests {
    use super::state_keys;

    /// What is said about a struct; empty when nothing is wrong with it.
    fn problems(source: &str) -> Vec<String> {
        let input = syn::parse_str(source).unwrap();
        let problem = state_keys(&input).err();
        problem.into_iter().flatten().map(|problem| problem.to_string()).collect()
    }

    #[test]
    fn what_cannot_be_a_state_is_refused_with_a_reason() {
        let serde = "only `rename = \"…\"` of serde's attributes applies to a key of the state, \
                     because every key is read and written alone; put others on the type of the value";
        let struct_serde = "only `rename_all = \"…\"` of serde's attributes applies to a state, \
                            because every key is read and written alone";
        let table: &[(&str, &[&str])] = &[
            ("struct S { a: u32 }", &[]),
            (
                "#[serde(rename_all = \"kebab-case\")] struct S { #[serde(rename = \"b\")] a: u32 }",
                &[],
            ),
            ("struct S { #[state(reducer = \"sum\", default = 1)] a: u32 }", &[]),
            ("struct S<T> { a: T }", &["a state has no parameters: its keys are constants"]),
            ("struct S(u32);", &["a state is a struct with named fields, one for each key"]),
            ("enum S { A }", &["a state is a struct with named fields, one for each key"]),
            (
                "struct S { #[state(reducer = \"add\")] a: u32 }",
                &[
                    "there is no reducer `add`; there are `replace`, `concat`, `merge`, `mergeById`, \
                   `max`, `min`, `sum`, `or`, `and`, `ifDefined`",
                ],
            ),
            (
                "struct S { #[state(rule = \"sum\")] a: u32 }",
                &["a key of the state has `reducer`, `merge_by`, `reduce_with` and `default`"],
            ),
            (
                "struct S { #[state(reducer = \"sum\", merge_by = \"b\")] a: u32 }",
                &["a key of the state has one rule; keep one of them"],
            ),
            (
                "#[state(reducer = \"sum\")] struct S { a: u32 }",
                &["`#[state(…)]` belongs to a field"],
            ),
            ("struct S { #[serde(flatten)] a: B }", &[serde]),
            ("struct S { #[serde(rename(serialize = \"b\"))] a: B }", &[serde]),
            ("#[serde(default)] struct S { a: u32 }", &[struct_serde]),
            (
                "#[serde(rename_all = \"Camel\")] struct S { a: u32 }",
                &["serde has no rule `Camel` for fields"],
            ),
            (
                "struct S { outputs: u32, #[serde(rename = \"outputs\")] a: u32 }",
                &["the key `outputs` belongs to the engine, which keeps there what nodes return; \
                   give this one another name"; 2],
            ),
            (
                "struct S { a: u32, #[serde(rename = \"a\")] b: u32 }",
                &["`A` is already the key `a`"],
            ),
        ];
        for (source, expected) in table {
            assert_eq!(problems(source), *expected, "{source}");
        }
    }
}
