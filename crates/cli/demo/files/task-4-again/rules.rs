//! The rules of the game, as a player would tell them.

use snake::board::{Board, Direction, Point};
use snake::body::Snake;
use snake::game::{Collision, Game, Status};

use Direction::{Down, Left, Right, Up};

/// A snake of this length in the middle of a 10 by 10 board, looking right, with the food far away.
fn game_with(length: usize) -> Game {
    let snake = Snake::new(Point::new(5, 5), Right, length);
    Game::set_up(Board::new(10, 10), snake, Point::new(9, 9))
}

fn walk(game: &mut Game, way: &[Direction]) -> Status {
    for direction in way {
        game.step(*direction);
    }
    game.status()
}

#[test]
fn a_step_moves_the_snake_one_cell() {
    let mut game = game_with(3);
    assert_eq!(game.step(Right), Status::Playing);
    assert_eq!(game.snake().head(), Point::new(6, 5));
    assert_eq!(game.snake().length(), 3);
    assert_eq!(game.score(), 0);
}

#[test]
fn eating_makes_the_snake_longer_and_moves_the_food() {
    let snake = Snake::new(Point::new(5, 5), Right, 3);
    let mut game = Game::set_up(Board::new(10, 10), snake, Point::new(6, 5));
    assert_eq!(game.step(Right), Status::Playing);
    assert_eq!(game.score(), 1);
    assert_eq!(game.snake().length(), 4);
    assert!(game.food().is_some_and(|food| !game.snake().occupies(food)));
}

#[test]
fn running_into_a_wall_ends_the_game() {
    let mut game = game_with(3);
    assert_eq!(walk(&mut game, &[Up; 5]), Status::Playing);
    assert_eq!(game.step(Up), Status::Lost(Collision::Wall));
}

#[test]
fn running_into_the_own_body_ends_the_game() {
    let mut game = game_with(5);
    let status = walk(&mut game, &[Down, Left, Up]);
    assert_eq!(status, Status::Lost(Collision::Body));
}

#[test]
fn the_head_may_enter_the_cell_the_tail_is_leaving() {
    let mut game = game_with(4);
    let status = walk(&mut game, &[Down, Left, Up]);
    assert_eq!(
        status,
        Status::Playing,
        "the tail moves away in the same step"
    );
}

#[test]
fn a_snake_can_chase_its_tail_in_circles() {
    let mut game = game_with(4);
    for round in 0..10 {
        let status = walk(&mut game, &[Down, Left, Up, Right]);
        assert_eq!(status, Status::Playing, "in round {round}");
    }
}

#[test]
fn nothing_moves_after_the_end() {
    let mut game = game_with(3);
    walk(&mut game, &[Up; 6]);
    let head = game.snake().head();
    assert_eq!(game.step(Right), Status::Lost(Collision::Wall));
    assert_eq!(game.snake().head(), head);
}

#[test]
fn filling_the_board_wins() {
    // Row by row through all 16 cells, like a plough; the last one holds the food.
    let way = [
        Right, Right, Right, Down, Left, Left, Left, Down, Right, Right, Right, Down, Left, Left,
        Left,
    ];
    let mut snake = Snake::new(Point::new(0, 0), Right, 1);
    for direction in &way[..14] {
        snake.grow(*direction);
    }
    let mut game = Game::set_up(Board::new(4, 4), snake, Point::new(0, 3));
    assert_eq!(game.step(Left), Status::Won);
    assert_eq!(game.food(), None);
}

#[test]
fn the_same_seed_gives_the_same_game() {
    let board = Board::new(20, 12);
    assert_eq!(Game::new(board, 5).food(), Game::new(board, 5).food());
}
