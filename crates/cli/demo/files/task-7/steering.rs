//! From key presses to the direction of the next step.

use std::collections::VecDeque;

use crate::board::Direction;

/// Remembers where the player wants to go.
#[derive(Clone, Debug)]
pub struct Steering {
    heading: Direction,
    turns: VecDeque<Direction>,
}

impl Steering {
    /// Turns that are kept for later steps. More would make the snake feel slow to obey.
    const MOST_TURNS: usize = 2;

    /// Straight on, until a key is pressed.
    pub fn new(heading: Direction) -> Self {
        Self {
            heading,
            turns: VecDeque::new(),
        }
    }

    /// A key was pressed. A snake cannot turn back on itself, so that is ignored.
    ///
    /// Each turn gets a step of its own: two quick presses within one tick are two turns, and what
    /// counts as turning back depends on the turn before.
    pub fn press(&mut self, wanted: Direction) {
        let before = self.turns.back().copied().unwrap_or(self.heading);
        let is_turn = wanted != before && wanted != before.opposite();
        if is_turn && self.turns.len() < Self::MOST_TURNS {
            self.turns.push_back(wanted);
        }
    }

    /// The direction of the step that is taken now.
    pub fn next_step(&mut self) -> Direction {
        self.heading = self.turns.pop_front().unwrap_or(self.heading);
        self.heading
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_a_key_the_snake_goes_straight_on() {
        let mut steering = Steering::new(Direction::Right);
        assert_eq!(steering.next_step(), Direction::Right);
        assert_eq!(steering.next_step(), Direction::Right);
    }

    #[test]
    fn a_key_turns_the_snake() {
        let mut steering = Steering::new(Direction::Right);
        steering.press(Direction::Down);
        assert_eq!(steering.next_step(), Direction::Down);
    }

    #[test]
    fn the_way_back_is_ignored() {
        let mut steering = Steering::new(Direction::Right);
        steering.press(Direction::Left);
        assert_eq!(steering.next_step(), Direction::Right);
    }

    #[test]
    fn only_a_few_turns_are_remembered() {
        let mut steering = Steering::new(Direction::Right);
        for direction in [Direction::Up, Direction::Left, Direction::Down] {
            steering.press(direction);
        }
        assert_eq!(steering.next_step(), Direction::Up);
        assert_eq!(steering.next_step(), Direction::Left);
        assert_eq!(steering.next_step(), Direction::Left);
    }
}
