//! The game in a terminal: keys in, frames out, one step per tick.

use std::io::{self, Read};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use crate::terminal::Terminal;
use snake::board::Board;
use snake::game::{Game, Status};
use snake::keys::{Decoder, Key};
use snake::steering::Steering;
use snake::view::{self, Style};

/// Plays until the player leaves and says the last score.
pub fn play(board: Board, seed: u64) -> io::Result<u32> {
    let mut terminal = Terminal::open()?;
    let keys = listen();
    let mut round = Round::new(board, seed);
    loop {
        terminal.draw(&round.frame())?;
        let next_tick = Instant::now() + round.tick();
        loop {
            let wait = next_tick.saturating_duration_since(Instant::now());
            match keys.recv_timeout(wait) {
                Ok(Key::Quit) | Err(RecvTimeoutError::Disconnected) => {
                    return Ok(round.game.score())
                }
                Ok(key) => round.press(key),
                Err(RecvTimeoutError::Timeout) => break,
            }
        }
        round.step();
    }
}

/// Reads keys in the background, because reading waits. The thread ends with the program.
fn listen() -> Receiver<Key> {
    let (sender, keys) = mpsc::channel();
    thread::spawn(move || {
        let mut decoder = Decoder::default();
        for byte in io::stdin().lock().bytes().map_while(Result::ok) {
            if let Some(key) = decoder.push(byte) {
                if sender.send(key).is_err() {
                    return;
                }
            }
        }
    });
    keys
}

/// One game and what the player is doing with it.
struct Round {
    game: Game,
    steering: Steering,
    is_paused: bool,
    seed: u64,
}

impl Round {
    fn new(board: Board, seed: u64) -> Self {
        Self {
            game: Game::new(board, seed),
            steering: Steering::new(Game::FIRST_HEADING),
            is_paused: false,
            seed,
        }
    }

    fn is_over(&self) -> bool {
        self.game.status() != Status::Playing
    }

    fn press(&mut self, key: Key) {
        match key {
            Key::Turn(direction) => self.steering.press(direction),
            Key::Pause => self.is_paused = !self.is_paused && !self.is_over(),
            Key::Restart if self.is_over() => {
                *self = Self::new(self.game.board(), self.seed.wrapping_add(1));
            }
            Key::Restart | Key::Quit => {}
        }
    }

    fn step(&mut self) {
        if !self.is_paused && !self.is_over() {
            self.game.step(self.steering.next_step());
        }
    }

    /// A longer snake is a faster snake.
    fn tick(&self) -> Duration {
        let faster_by = u64::from(self.game.score()) * 3;
        Duration::from_millis(160_u64.saturating_sub(faster_by).max(70))
    }

    fn frame(&self) -> String {
        let help = match (self.is_over(), self.is_paused) {
            (true, _) => "r: play again   q: leave",
            (false, true) => "Paused.   p: go on   q: leave",
            (false, false) => "arrows or wasd: turn   p: pause   q: leave",
        };
        format!("{} {help}\n", view::frame(&self.game, Style::Colour))
    }
}
