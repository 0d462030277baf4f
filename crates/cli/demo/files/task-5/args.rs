//! What the command line asks for.

/// The help text.
pub const USAGE: &str = "\
Usage: snake [--autoplay STEPS] [--seed NUMBER]

  --autoplay STEPS  let the computer play so many steps and print the last frame
  --seed NUMBER     put the food in the same places as with this number before
  --help            show this text

Keys: arrows or w a s d to turn, p or space to pause, r to begin again, q to leave.";

/// What to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command {
    /// Play in the terminal; without a seed every game is another one.
    Play { seed: Option<u64> },
    /// Let the autopilot play; the same every time unless another seed is given.
    Autoplay { steps: u32, seed: u64 },
    /// Show the usage.
    Help,
}

/// Reads the arguments that follow the program's name.
pub fn parse(mut args: impl Iterator<Item = String>) -> Result<Command, String> {
    let mut steps = None;
    let mut seed = None;
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--autoplay" => steps = Some(number(&arg, args.next())?),
            "--seed" => seed = Some(number(&arg, args.next())?),
            "--help" | "-h" => return Ok(Command::Help),
            _ => return Err(format!("`{arg}` is not an option")),
        }
    }
    Ok(match steps {
        Some(steps) => Command::Autoplay {
            steps,
            seed: seed.unwrap_or(1),
        },
        None => Command::Play { seed },
    })
}

fn number<T: std::str::FromStr>(option: &str, value: Option<String>) -> Result<T, String> {
    let value = value.ok_or_else(|| format!("`{option}` needs a number after it"))?;
    value
        .parse()
        .map_err(|_| format!("`{option}` needs a whole number, not `{value}`"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse_line(line: &str) -> Result<Command, String> {
        parse(line.split_whitespace().map(str::to_owned))
    }

    #[test]
    fn arguments_are_understood() {
        let table = [
            ("", Command::Play { seed: None }),
            ("--seed 4", Command::Play { seed: Some(4) }),
            ("--autoplay 9", Command::Autoplay { steps: 9, seed: 1 }),
            (
                "--autoplay 9 --seed 4",
                Command::Autoplay { steps: 9, seed: 4 },
            ),
            ("--help", Command::Help),
        ];
        for (line, expected) in table {
            assert_eq!(parse_line(line), Ok(expected), "{line}");
        }
    }

    #[test]
    fn mistakes_are_named() {
        let table = [
            ("--fast", "`--fast` is not an option"),
            ("--autoplay", "`--autoplay` needs a number after it"),
            ("--seed x", "`--seed` needs a whole number, not `x`"),
        ];
        for (line, expected) in table {
            assert_eq!(parse_line(line), Err(expected.to_owned()), "{line}");
        }
    }
}
