export const shout = (text: string) => text.toUpperCase();
export const whisper = (text: string) => text.toLowerCase();
