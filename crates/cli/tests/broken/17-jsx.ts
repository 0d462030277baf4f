// ATM708 2:18
export const a = <div class="x"></div>;
