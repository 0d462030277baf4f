import { readFile, shell } from "atomic/host";

export async function look(): Promise<string> {
  const done = await shell("ls", { timeoutms: 5 }); //! TS2561
  return readFile(done); //! TS2345
}
