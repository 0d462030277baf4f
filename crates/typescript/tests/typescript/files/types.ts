export interface ReviewState { prompt: string }
export enum Phase { Plan = "plan", Work = "work" }
export const enum Limit { Soft = 3, Hard = 10 }
