//! What the keys mean.

use crate::board::Direction;

/// A wish of the player.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Key {
    /// Go this way.
    Turn(Direction),
    /// Hold the game, or go on.
    Pause,
    /// Begin again when the game is over.
    Restart,
    /// Leave.
    Quit,
}

/// Puts keys together from the bytes a terminal sends; an arrow key is three of them.
#[derive(Debug, Default)]
pub struct Decoder {
    state: State,
}

#[derive(Clone, Copy, Debug, Default)]
enum State {
    #[default]
    Plain,
    Escape,
    Arrow,
}

impl Decoder {
    /// Takes the next byte and says which key it completed, if any.
    pub fn push(&mut self, byte: u8) -> Option<Key> {
        const ESCAPE: u8 = 0x1b;
        let state = std::mem::take(&mut self.state);
        match (state, byte) {
            (_, ESCAPE) => {
                self.state = State::Escape;
                None
            }
            (State::Escape, b'[' | b'O') => {
                self.state = State::Arrow;
                None
            }
            (State::Arrow, _) => arrow(byte),
            (State::Plain | State::Escape, _) => plain(byte),
        }
    }
}

fn arrow(byte: u8) -> Option<Key> {
    match byte {
        b'A' => Some(Key::Turn(Direction::Up)),
        b'B' => Some(Key::Turn(Direction::Down)),
        b'C' => Some(Key::Turn(Direction::Right)),
        b'D' => Some(Key::Turn(Direction::Left)),
        _ => None,
    }
}

fn plain(byte: u8) -> Option<Key> {
    const CTRL_C: u8 = 0x03;
    match byte.to_ascii_lowercase() {
        b'w' => Some(Key::Turn(Direction::Up)),
        b'a' => Some(Key::Turn(Direction::Left)),
        b's' => Some(Key::Turn(Direction::Down)),
        b'd' => Some(Key::Turn(Direction::Right)),
        b'p' | b' ' => Some(Key::Pause),
        b'r' => Some(Key::Restart),
        b'q' | CTRL_C => Some(Key::Quit),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decode(bytes: &[u8]) -> Vec<Key> {
        let mut decoder = Decoder::default();
        bytes
            .iter()
            .filter_map(|byte| decoder.push(*byte))
            .collect()
    }

    #[test]
    fn arrow_keys_and_letters_turn_the_snake() {
        let up_and_left = [Key::Turn(Direction::Up), Key::Turn(Direction::Left)];
        assert_eq!(decode(b"\x1b[A\x1b[D"), up_and_left);
        assert_eq!(decode(b"\x1bOA\x1bOD"), up_and_left);
        assert_eq!(decode(b"wA"), up_and_left);
    }

    #[test]
    fn q_and_ctrl_c_leave() {
        assert_eq!(decode(b"q\x03"), [Key::Quit, Key::Quit]);
    }

    #[test]
    fn an_escape_that_begins_nothing_swallows_nothing() {
        assert_eq!(decode(b"\x1bq"), [Key::Quit]);
        assert_eq!(decode(b"\x1b\x1b[B"), [Key::Turn(Direction::Down)]);
    }

    #[test]
    fn other_keys_mean_nothing() {
        assert_eq!(decode(b"xyz\x1b[H"), []);
    }
}
