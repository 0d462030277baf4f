//! `atomic models`: what the agent program can be asked for.

use std::process::ExitCode;

use atomic_backend::ModelOffer;
use serde_json::json;

use super::here::Here;
use crate::args::BackendArgs;
use crate::failure::Failure;
use crate::paint;

pub(crate) fn models(args: &BackendArgs) -> Result<ExitCode, Failure> {
    let here = Here::with(&args.place)?;
    let backend = here.backend.id();
    let offers = here.ask(async |backend, place| backend.models(place).await)?;
    if offers.is_empty() {
        let text = format!("{backend} has no list of models: any name will do.");
        let say = if args.json { paint::aside } else { paint::line };
        say(&text);
        return Ok(ExitCode::SUCCESS);
    }
    let lines: Vec<String> = if args.json {
        let as_json = |ModelOffer { name, about }: &ModelOffer| {
            json!({ "backend": backend, "name": name, "description": about }).to_string()
        };
        offers.iter().map(as_json).collect()
    } else {
        let row = |ModelOffer { name, about }: &ModelOffer| {
            [paint::label(name), paint::printable(&paint::one_line(about))]
        };
        paint::aligned(&offers.iter().map(row).collect::<Vec<_>>())
    };
    paint::line(&lines.join("\n"));
    Ok(ExitCode::SUCCESS)
}
