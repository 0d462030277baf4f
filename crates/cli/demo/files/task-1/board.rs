//! The field the game is played on: cells, directions, and what lies inside.

/// A cell, counted from the top left corner. It may lie outside the board.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Point {
    /// Columns from the left edge.
    pub x: i32,
    /// Rows from the top edge.
    pub y: i32,
}

impl Point {
    /// The cell in column `x` and row `y`.
    pub const fn new(x: i32, y: i32) -> Self {
        Self { x, y }
    }

    /// The neighbour in this direction, inside the board or not.
    pub const fn step(self, direction: Direction) -> Self {
        match direction {
            Direction::Up => Self::new(self.x, self.y - 1),
            Direction::Right => Self::new(self.x + 1, self.y),
            Direction::Down => Self::new(self.x, self.y + 1),
            Direction::Left => Self::new(self.x - 1, self.y),
        }
    }

    /// How many steps apart two cells are when nothing is in the way.
    pub const fn distance(self, other: Self) -> i32 {
        (self.x - other.x).abs() + (self.y - other.y).abs()
    }
}

/// Where a snake can go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// Towards the first row.
    Up,
    /// Towards the last column.
    Right,
    /// Towards the last row.
    Down,
    /// Towards the first column.
    Left,
}

impl Direction {
    /// All four, clockwise.
    pub const ALL: [Self; 4] = [Self::Up, Self::Right, Self::Down, Self::Left];

    /// The way back.
    pub const fn opposite(self) -> Self {
        match self {
            Self::Up => Self::Down,
            Self::Right => Self::Left,
            Self::Down => Self::Up,
            Self::Left => Self::Right,
        }
    }
}

/// A rectangle of cells with a wall around it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Board {
    width: i32,
    height: i32,
}

impl Board {
    /// The shortest side a board can have: a new snake must fit in.
    pub const SHORTEST_SIDE: u16 = 4;

    /// A board of this size; sides that are too short become [`Board::SHORTEST_SIDE`].
    pub fn new(width: u16, height: u16) -> Self {
        Self {
            width: width.max(Self::SHORTEST_SIDE).into(),
            height: height.max(Self::SHORTEST_SIDE).into(),
        }
    }

    /// The number of columns.
    pub const fn width(self) -> i32 {
        self.width
    }

    /// The number of rows.
    pub const fn height(self) -> i32 {
        self.height
    }

    /// The cell in the middle.
    pub const fn centre(self) -> Point {
        Point::new(self.width / 2, self.height / 2)
    }

    /// Whether a cell lies within the walls.
    pub const fn contains(self, point: Point) -> bool {
        0 <= point.x && point.x < self.width && 0 <= point.y && point.y < self.height
    }

    /// Every cell, row by row.
    pub fn cells(self) -> impl Iterator<Item = Point> {
        (0..self.height).flat_map(move |y| (0..self.width).map(move |x| Point::new(x, y)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_and_the_way_back_end_where_they_began() {
        let start = Point::new(3, 7);
        for direction in Direction::ALL {
            let there = start.step(direction);
            assert_eq!(start.distance(there), 1);
            assert_eq!(there.step(direction.opposite()), start);
        }
    }

    #[test]
    fn the_walls_are_just_outside_the_corners() {
        let board = Board::new(5, 4);
        assert!(board.contains(Point::new(0, 0)));
        assert!(board.contains(Point::new(4, 3)));
        for outside in [(-1, 0), (0, -1), (5, 3), (4, 4)] {
            assert!(
                !board.contains(Point::new(outside.0, outside.1)),
                "{outside:?}"
            );
        }
    }

    #[test]
    fn every_cell_is_listed_once() {
        let board = Board::new(5, 4);
        let cells: Vec<Point> = board.cells().collect();
        assert_eq!(cells.len(), 20);
        assert!(cells.iter().all(|cell| board.contains(*cell)));
        for (index, cell) in cells.iter().enumerate() {
            assert!(!cells[..index].contains(cell), "{cell:?} is listed twice");
        }
    }

    #[test]
    fn a_tiny_board_is_made_large_enough() {
        let board = Board::new(0, 1);
        assert_eq!((board.width(), board.height()), (4, 4));
    }
}
