import { annotation, Reducers } from "@atomic/workflows";

export const rounds = annotation<number>("none", Reducers.sum); //! TS2345
export const names = annotation<string[]>([], Reducers.sum); //! TS2345
