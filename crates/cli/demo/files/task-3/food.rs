//! Where the next bite appears.

use crate::board::{Board, Point};
use crate::random::Random;

/// Chooses a free cell for the food; nothing when the board is full.
pub fn place(board: Board, is_taken: impl Fn(Point) -> bool, random: &mut Random) -> Option<Point> {
    let free: Vec<Point> = board.cells().filter(|cell| !is_taken(*cell)).collect();
    random.pick(&free)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn food_appears_only_on_free_cells() {
        let board = Board::new(6, 6);
        let mut random = Random::new(42);
        for _ in 0..100 {
            let food = place(board, |cell| cell.x < 3, &mut random);
            assert!(
                food.is_some_and(|cell| board.contains(cell) && cell.x >= 3),
                "{food:?}"
            );
        }
    }

    #[test]
    fn the_last_free_cell_is_found() {
        let last = Point::new(2, 3);
        let food = place(Board::new(4, 4), |cell| cell != last, &mut Random::new(7));
        assert_eq!(food, Some(last));
    }

    #[test]
    fn a_full_board_has_no_room_for_food() {
        assert_eq!(place(Board::new(4, 4), |_| true, &mut Random::new(7)), None);
    }

    #[test]
    fn the_same_seed_puts_food_in_the_same_place() {
        let board = Board::new(20, 12);
        let first = place(board, |_| false, &mut Random::new(9));
        assert_eq!(first, place(board, |_| false, &mut Random::new(9)));
    }
}
