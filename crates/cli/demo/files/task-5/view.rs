//! A game as text. A cell is two columns wide, because a column is half as wide as a row is high.

use crate::board::Point;
use crate::game::{Collision, Game, Status};

/// How a frame is painted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// Text alone.
    Plain,
    /// Text with ANSI colours.
    Colour,
}

/// The whole picture: the score, the board within its walls, and a line about the game.
pub fn frame(game: &Game, style: Style) -> String {
    let board = game.board();
    let edge = "──".repeat(usize::try_from(board.width()).unwrap_or(0));
    let mut text = format!(" Score {}\n┌{edge}┐\n", game.score());
    for y in 0..board.height() {
        text.push('│');
        for x in 0..board.width() {
            text.push_str(cell(game, Point::new(x, y), style));
        }
        text.push_str("│\n");
    }
    text.push_str(&format!("└{edge}┘\n {}\n", message(game.status())));
    text
}

/// How the game stands, in words.
pub fn message(status: Status) -> &'static str {
    match status {
        Status::Playing => "Eat and do not bite yourself.",
        Status::Lost(Collision::Wall) => "Game over: you ran into the wall.",
        Status::Lost(Collision::Body) => "Game over: you bit yourself.",
        Status::Won => "You won: the board is full!",
    }
}

fn cell(game: &Game, point: Point, style: Style) -> &'static str {
    let is_head = point == game.snake().head();
    match style {
        Style::Plain if is_head => "@@",
        Style::Plain if game.snake().occupies(point) => "██",
        Style::Plain if game.food() == Some(point) => "<>",
        Style::Colour if is_head => "\x1b[93m██\x1b[0m",
        Style::Colour if game.snake().occupies(point) => "\x1b[32m██\x1b[0m",
        Style::Colour if game.food() == Some(point) => "\x1b[91m<>\x1b[0m",
        Style::Plain | Style::Colour => "  ",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::board::{Board, Direction};
    use crate::body::Snake;

    fn small_game() -> Game {
        let snake = Snake::new(Point::new(2, 1), Direction::Right, 3);
        Game::set_up(Board::new(4, 4), snake, Point::new(1, 3))
    }

    #[test]
    fn a_frame_shows_walls_snake_and_food() {
        let expected = "\
\x20Score 0
┌────────┐
│        │
│████@@  │
│        │
│  <>    │
└────────┘
 Eat and do not bite yourself.
";
        assert_eq!(frame(&small_game(), Style::Plain), expected);
    }

    #[test]
    fn the_end_of_the_game_is_told() {
        let mut game = small_game();
        game.step(Direction::Right);
        game.step(Direction::Right);
        let frame = frame(&game, Style::Plain);
        assert!(
            frame.ends_with(" Game over: you ran into the wall.\n"),
            "{frame}"
        );
    }

    #[test]
    fn colours_change_nothing_but_colours() {
        let coloured = frame(&small_game(), Style::Colour);
        let mut plain = coloured.replace("\x1b[93m██", "@@");
        for code in ["\x1b[32m", "\x1b[91m", "\x1b[0m"] {
            plain = plain.replace(code, "");
        }
        assert_eq!(plain, frame(&small_game(), Style::Plain));
    }
}
