//! What the program knows about models.

use std::path::Path;

use atomic_event::BackendId;
use serde_json::Value;

use super::ID;
use super::decode::Decoder;
use super::server::Server;
use super::wire::Model;
use crate::BackendError;

/// What matters of a model.
pub(super) struct Facts {
    window: Option<u64>,
    is_priced: bool,
    model: String,
}

impl Facts {
    /// Looks a model up.
    pub(super) async fn of(
        server: &Server,
        folder: &Path,
        model: &Model,
    ) -> Result<Self, BackendError> {
        let catalogue = server.catalogue(folder).await?;
        let providers = catalogue.get("providers").and_then(Value::as_array).into_iter().flatten();
        let of_model = |provider: &Value| provider.get("id")?.as_str().map(str::to_owned);
        let provider = providers
            .into_iter()
            .find(|provider| of_model(provider).as_deref() == Some(&model.provider));
        let known = provider.and_then(|provider| provider.get("models")?.get(&model.name));
        let known = known.ok_or_else(|| unknown(model, provider.is_some()))?;
        let price = |key: &str| known["cost"][key].as_f64().unwrap_or(0.0);
        Ok(Self {
            model: model.name.clone(),
            window: known["limit"]["context"].as_u64().filter(|window| *window > 0),
            is_priced: price("input") > 0.0 || price("output") > 0.0,
        })
    }

    pub(super) fn tell(&self, decoder: &mut Decoder) {
        decoder.window = self.window;
        decoder.is_priced = self.is_priced;
        decoder.model.clone_from(&self.model);
    }
}

fn unknown(model: &Model, has_provider: bool) -> BackendError {
    let Model { provider, name } = model;
    let message = if has_provider {
        format!("{provider} has no model {name}")
    } else {
        format!("the provider {provider} of {provider}/{name} is not set up in opencode")
    };
    let message = format!("{message} (atomic models --backend opencode lists what there is)");
    BackendError::ModelUnknown { backend: BackendId::from(ID), message }
}
