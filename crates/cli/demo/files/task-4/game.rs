//! The rules: move, eat, grow, and end.

use crate::board::{Board, Direction, Point};
use crate::body::Snake;
use crate::food;
use crate::random::Random;

/// How a game stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// The snake is alive.
    Playing,
    /// The snake ran into something.
    Lost(Collision),
    /// The snake fills the whole board.
    Won,
}

/// What a snake can run into.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Collision {
    /// The edge of the board.
    Wall,
    /// The snake's own body.
    Body,
}

/// One game, from the first step to the last.
#[derive(Clone, Debug)]
pub struct Game {
    board: Board,
    snake: Snake,
    food: Option<Point>,
    score: u32,
    status: Status,
    random: Random,
}

impl Game {
    /// Where a new snake looks.
    pub const FIRST_HEADING: Direction = Direction::Right;

    /// A new game; the same seed puts the food in the same places.
    pub fn new(board: Board, seed: u64) -> Self {
        let snake = Snake::new(board.centre(), Self::FIRST_HEADING, 3);
        let mut random = Random::new(seed);
        let food = food::place(board, |cell| snake.occupies(cell), &mut random);
        Self {
            board,
            snake,
            food,
            score: 0,
            status: Status::Playing,
            random,
        }
    }

    /// A game that begins with this snake and this food, as a puzzle or a test needs it.
    pub fn set_up(board: Board, snake: Snake, food: Point) -> Self {
        Self {
            board,
            snake,
            food: Some(food),
            score: 0,
            status: Status::Playing,
            random: Random::new(0),
        }
    }

    /// The field.
    pub fn board(&self) -> Board {
        self.board
    }

    /// The snake as it lies now.
    pub fn snake(&self) -> &Snake {
        &self.snake
    }

    /// The food, unless the board is full.
    pub fn food(&self) -> Option<Point> {
        self.food
    }

    /// How often the snake has eaten.
    pub fn score(&self) -> u32 {
        self.score
    }

    /// How the game stands.
    pub fn status(&self) -> Status {
        self.status
    }

    /// What the snake would run into with its next step in this direction.
    pub fn collision(&self, direction: Direction) -> Option<Collision> {
        let next = self.snake.head().step(direction);
        if !self.board.contains(next) {
            Some(Collision::Wall)
        } else if self.snake.occupies(next) {
            Some(Collision::Body)
        } else {
            None
        }
    }

    /// Moves the snake one cell. A game that is over stays as it is.
    pub fn step(&mut self, direction: Direction) -> Status {
        if self.status != Status::Playing {
            return self.status;
        }
        if let Some(collision) = self.collision(direction) {
            self.status = Status::Lost(collision);
        } else if self.food == Some(self.snake.head().step(direction)) {
            self.eat(direction);
        } else {
            self.snake.advance(direction);
        }
        self.status
    }

    fn eat(&mut self, direction: Direction) {
        self.snake.grow(direction);
        self.score += 1;
        self.food = food::place(
            self.board,
            |cell| self.snake.occupies(cell),
            &mut self.random,
        );
        if self.food.is_none() {
            self.status = Status::Won;
        }
    }
}
