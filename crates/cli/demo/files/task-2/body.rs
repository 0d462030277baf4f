//! The snake itself: a line of cells that moves by its head.

use std::collections::VecDeque;

use crate::board::{Direction, Point};

/// The cells a snake lies on, head first; there is always at least one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snake {
    cells: VecDeque<Point>,
}

impl Snake {
    /// A straight snake that looks towards `heading`; it is at least one cell long.
    pub fn new(head: Point, heading: Direction, length: usize) -> Self {
        let mut cells = VecDeque::from([head]);
        let mut cell = head;
        for _ in 1..length {
            cell = cell.step(heading.opposite());
            cells.push_back(cell);
        }
        Self { cells }
    }

    /// The cell in front.
    pub fn head(&self) -> Point {
        self.cells[0]
    }

    /// The cell at the end.
    pub fn tail(&self) -> Point {
        self.cells[self.cells.len() - 1]
    }

    /// The number of cells.
    pub fn length(&self) -> usize {
        self.cells.len()
    }

    /// Whether the snake lies on this cell.
    pub fn occupies(&self, cell: Point) -> bool {
        self.cells.contains(&cell)
    }

    /// Moves one cell: the head goes forward and the tail follows.
    pub fn advance(&mut self, direction: Direction) {
        self.grow(direction);
        self.cells.pop_back();
    }

    /// Becomes one cell longer: the head goes forward and the tail stays.
    pub fn grow(&mut self, direction: Direction) {
        self.cells.push_front(self.head().step(direction));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: Point = Point::new(5, 5);

    #[test]
    fn a_new_snake_lies_straight_behind_its_head() {
        let snake = Snake::new(HEAD, Direction::Right, 3);
        assert_eq!(snake.length(), 3);
        assert_eq!(snake.head(), HEAD);
        assert_eq!(snake.tail(), Point::new(3, 5));
        assert!(snake.occupies(Point::new(4, 5)));
    }

    #[test]
    fn advancing_moves_both_ends() {
        let mut snake = Snake::new(HEAD, Direction::Right, 3);
        snake.advance(Direction::Up);
        assert_eq!(snake.length(), 3);
        assert_eq!(snake.head(), Point::new(5, 4));
        assert_eq!(snake.tail(), Point::new(4, 5));
        assert!(!snake.occupies(Point::new(3, 5)));
    }

    #[test]
    fn growing_moves_only_the_head() {
        let mut snake = Snake::new(HEAD, Direction::Right, 3);
        snake.grow(Direction::Right);
        assert_eq!(snake.length(), 4);
        assert_eq!(snake.head(), Point::new(6, 5));
        assert_eq!(snake.tail(), Point::new(3, 5));
    }

    #[test]
    fn the_shortest_snake_is_all_head() {
        let snake = Snake::new(HEAD, Direction::Down, 0);
        assert_eq!(snake.length(), 1);
        assert_eq!(snake.head(), snake.tail());
    }
}
