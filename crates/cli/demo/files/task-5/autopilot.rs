//! A careful player: goes for the food, but not into a dead end.

use std::collections::HashSet;

use crate::board::{Direction, Point};
use crate::game::Game;

/// The direction the autopilot would go next.
pub fn choose(game: &Game) -> Direction {
    let head = game.snake().head();
    let goal = game.food().unwrap_or(head);
    Direction::ALL
        .into_iter()
        .filter(|direction| game.collision(*direction).is_none())
        .min_by_key(|direction| {
            let next = head.step(*direction);
            let is_trap = room(game, next) < game.snake().length();
            (is_trap, next.distance(goal))
        })
        // Every way is deadly: one is as good as another.
        .unwrap_or(Game::FIRST_HEADING)
}

/// How many cells the snake can reach from here without crossing itself.
fn room(game: &Game, start: Point) -> usize {
    let is_free = |cell: &Point| !game.snake().occupies(*cell);
    let mut unseen: HashSet<Point> = game.board().cells().filter(is_free).collect();
    unseen.remove(&start);
    let mut edge = vec![start];
    let mut count = 0;
    while let Some(cell) = edge.pop() {
        count += 1;
        for direction in Direction::ALL {
            let neighbour = cell.step(direction);
            if unseen.remove(&neighbour) {
                edge.push(neighbour);
            }
        }
    }
    count
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::board::Board;
    use crate::body::Snake;
    use crate::game::Status;

    #[test]
    fn it_goes_for_the_food() {
        let snake = Snake::new(Point::new(5, 5), Direction::Right, 3);
        let game = Game::set_up(Board::new(10, 10), snake, Point::new(5, 2));
        assert_eq!(choose(&game), Direction::Up);
    }

    #[test]
    fn it_does_not_enter_a_dead_end() {
        // The food lies in the corner, and the snake lies around it: no way out after the meal.
        let mut snake = Snake::new(Point::new(3, 0), Direction::Left, 1);
        for direction in [
            Direction::Left,
            Direction::Left,
            Direction::Down,
            Direction::Left,
        ] {
            snake.grow(direction);
        }
        let game = Game::set_up(Board::new(10, 10), snake, Point::new(0, 0));
        assert_eq!(choose(&game), Direction::Down);
    }

    #[test]
    fn it_survives_a_few_hundred_steps_and_eats() {
        let mut game = Game::new(Board::new(20, 12), 1);
        for _ in 0..300 {
            game.step(choose(&game));
        }
        assert_eq!(game.status(), Status::Playing);
        assert!(game.score() >= 10, "the score is only {}", game.score());
    }
}
