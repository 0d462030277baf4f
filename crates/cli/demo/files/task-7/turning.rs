//! Quick fingers: what happens when keys come faster than the snake moves.

use snake::board::{Board, Direction, Point};
use snake::body::Snake;
use snake::game::{Game, Status};
use snake::steering::Steering;

#[test]
fn two_quick_presses_do_not_turn_the_snake_back_on_itself() {
    let snake = Snake::new(Point::new(5, 5), Direction::Right, 3);
    let mut game = Game::set_up(Board::new(10, 10), snake, Point::new(9, 9));
    let mut steering = Steering::new(Direction::Right);

    steering.press(Direction::Up);
    steering.press(Direction::Left);

    assert_eq!(game.step(steering.next_step()), Status::Playing);
    assert_eq!(game.snake().head(), Point::new(5, 4), "first up");
    assert_eq!(game.step(steering.next_step()), Status::Playing);
    assert_eq!(game.snake().head(), Point::new(4, 4), "then left");
}
