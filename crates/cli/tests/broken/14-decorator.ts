// ATM708 3:1
const mark = (c: unknown) => c;
@mark
class A {}
export const a = new A();
