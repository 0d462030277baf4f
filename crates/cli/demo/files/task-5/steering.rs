//! From key presses to the direction of the next step.

use crate::board::Direction;

/// Remembers where the player wants to go.
#[derive(Clone, Debug)]
pub struct Steering {
    heading: Direction,
}

impl Steering {
    /// Straight on, until a key is pressed.
    pub fn new(heading: Direction) -> Self {
        Self { heading }
    }

    /// A key was pressed. A snake cannot turn back on itself, so that is ignored.
    pub fn press(&mut self, wanted: Direction) {
        if wanted != self.heading.opposite() {
            self.heading = wanted;
        }
    }

    /// The direction of the step that is taken now.
    pub fn next_step(&mut self) -> Direction {
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
}
