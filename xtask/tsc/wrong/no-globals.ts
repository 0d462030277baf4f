export const folder = process.cwd(); //! TS2591
export const page = fetch("https://example.com"); //! TS2304
export const shown = document.title; //! TS2584
