// "atomic/types": types only, so there is nothing in it when it runs.
export {};
