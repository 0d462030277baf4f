//! What the attributes of a state say.

use proc_macro2::TokenStream;
use quote::quote;
use syn::meta::ParseNestedMeta;
use syn::{Attribute, Error, Expr, LitStr, Path, Result};

use crate::rename::{RULES, Rename};

/// The rules of the engine, by name.
const REDUCERS: &[(&str, &str)] = &[
    ("replace", "Replace"),
    ("concat", "Concat"),
    ("merge", "Merge"),
    ("mergeById", "MergeById"),
    ("max", "Max"),
    ("min", "Min"),
    ("sum", "Sum"),
    ("or", "Or"),
    ("and", "And"),
    ("ifDefined", "IfDefined"),
];

/// What the attributes of one field say.
#[derive(Default)]
pub(crate) struct FieldOptions {
    /// How changes meet what is there, as an expression.
    pub(crate) reduce: Option<TokenStream>,
    /// What a run begins with.
    pub(crate) default: Option<Expr>,
    /// The key in the JSON.
    pub(crate) rename: Option<String>,
}

impl FieldOptions {
    pub(crate) fn read(attributes: &[Attribute]) -> Result<Self> {
        let mut options = Self::default();
        for attribute in attributes {
            if attribute.path().is_ident("state") {
                attribute.parse_nested_meta(|meta| options.state(&meta))?;
            } else if attribute.path().is_ident("serde") {
                attribute.parse_nested_meta(|meta| options.serde(&meta))?;
            }
        }
        Ok(options)
    }

    fn state(&mut self, meta: &ParseNestedMeta<'_>) -> Result<()> {
        if meta.path.is_ident("default") {
            self.default = Some(meta.value()?.parse()?);
            return Ok(());
        }
        let reduce = if meta.path.is_ident("reducer") {
            named_reducer(&meta.value()?.parse()?)?
        } else if meta.path.is_ident("merge_by") {
            let field: LitStr = meta.value()?.parse()?;
            quote!(::atomic_workflow::Reducer::MergeBy(#field.to_owned()))
        } else if meta.path.is_ident("reduce_with") {
            let function: Path = meta.value()?.parse()?;
            quote!(::atomic_workflow::Reduce::with(#function))
        } else {
            return Err(meta.error(
                "a key of the state has `reducer`, `merge_by`, `reduce_with` and `default`",
            ));
        };
        if self.reduce.replace(reduce).is_some() {
            return Err(meta.error("a key of the state has one rule; keep one of them"));
        }
        Ok(())
    }

    fn serde(&mut self, meta: &ParseNestedMeta<'_>) -> Result<()> {
        if meta.path.is_ident("rename") && meta.input.peek(syn::Token![=]) {
            self.rename = Some(meta.value()?.parse::<LitStr>()?.value());
            return Ok(());
        }
        Err(meta.error(
            "only `rename = \"…\"` of serde's attributes applies to a key of the state, because \
             every key is read and written alone; put others on the type of the value",
        ))
    }
}

fn named_reducer(name: &LitStr) -> Result<TokenStream> {
    let wanted = name.value();
    let found = REDUCERS.iter().find(|(name, _)| *name == wanted);
    let Some((_, variant)) = found else {
        let known: Vec<String> = REDUCERS.iter().map(|(name, _)| format!("`{name}`")).collect();
        let message = format!("there is no reducer `{wanted}`; there are {}", known.join(", "));
        return Err(Error::new(name.span(), message));
    };
    let variant = syn::Ident::new(variant, name.span());
    Ok(quote!(::atomic_workflow::Reducer::#variant))
}

/// How serde renames all fields of the struct.
pub(crate) fn rename_all(attributes: &[Attribute]) -> Result<Rename> {
    let mut rename: Rename = str::to_owned;
    for attribute in attributes {
        if attribute.path().is_ident("state") {
            return Err(Error::new_spanned(attribute, "`#[state(…)]` belongs to a field"));
        }
        if !attribute.path().is_ident("serde") {
            continue;
        }
        attribute.parse_nested_meta(|meta| {
            if meta.path.is_ident("rename_all") && meta.input.peek(syn::Token![=]) {
                let rule: LitStr = meta.value()?.parse()?;
                let found = RULES.iter().find(|(name, _)| *name == rule.value());
                let Some((_, found)) = found else {
                    let message = format!("serde has no rule `{}` for fields", rule.value());
                    return Err(Error::new(rule.span(), message));
                };
                rename = *found;
                return Ok(());
            }
            Err(meta.error(
                "only `rename_all = \"…\"` of serde's attributes applies to a state, because \
                 every key is read and written alone",
            ))
        })?;
    }
    Ok(rename)
}
