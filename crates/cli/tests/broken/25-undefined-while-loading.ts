// ATM713 3:25
const settings: { deep?: { name: string } } = {};
export const argument = settings.deep!.name;
