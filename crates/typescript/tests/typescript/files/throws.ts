interface State {
  tasks: string[];
}
enum Padding { A, B }

function inner(state: State | undefined): number {
  type Local = number;
  return state!.tasks.length as Local;
}

export const outer = () => {
  try {
    return inner(undefined);
  } catch (cause) {
    throw new Error("cannot count", { cause });
  }
};

export const later = async () => {
  await null;
  const text: string = "ä😀"; throw Object.assign(new RangeError("too late"), { code: "late" });
};

export const plain = () => {
  throw { reason: "no error" };
};
void Padding;
