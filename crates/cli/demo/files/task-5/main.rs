//! Snake in a terminal: `snake` to play, `snake --autoplay 200` to watch the result of a game.

mod args;
mod play;
mod terminal;

use std::io::{self, IsTerminal, Write};
use std::process::ExitCode;
use std::time::{SystemTime, UNIX_EPOCH};

use args::Command;
use snake::autopilot;
use snake::board::Board;
use snake::game::{Game, Status};
use snake::view::{self, Style};

/// Columns and rows of the board; with its walls it fits a terminal of 80 by 24.
const BOARD_SIZE: (u16, u16) = (20, 12);

fn main() -> ExitCode {
    let result = match args::parse(std::env::args().skip(1)) {
        Ok(command) => run(command),
        Err(message) => {
            eprintln!("snake: {message}\n\n{}", args::USAGE);
            return ExitCode::from(2);
        }
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("snake: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(command: Command) -> io::Result<()> {
    let board = Board::new(BOARD_SIZE.0, BOARD_SIZE.1);
    match command {
        Command::Help => writeln!(io::stdout(), "{}", args::USAGE),
        Command::Autoplay { steps, seed } => autoplay(Game::new(board, seed), steps),
        Command::Play { seed } => {
            if !io::stdin().is_terminal() || !io::stdout().is_terminal() {
                return Err(io::Error::other(
                    "this is not a terminal; try `--autoplay 200` instead",
                ));
            }
            let score = play::play(board, seed.unwrap_or_else(seed_from_clock))?;
            writeln!(io::stdout(), "Your score: {score}")
        }
    }
}

/// Lets the autopilot play and prints the last frame.
fn autoplay(mut game: Game, steps: u32) -> io::Result<()> {
    let mut taken = 0;
    while taken < steps && game.status() == Status::Playing {
        game.step(autopilot::choose(&game));
        taken += 1;
    }
    let frame = view::frame(&game, Style::Plain);
    writeln!(io::stdout(), "{frame} {taken} steps played")
}

fn seed_from_clock() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |elapsed| elapsed.as_millis() as u64)
}
