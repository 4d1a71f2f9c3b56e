/** What `vendorctl` exits with; scripts rely on these numbers. Success is 0. */
export const EXIT = {
  failed: 1,
  changesPending: 2,
  unknown: 2,
  checkFailed: 3,
  warnings: 4,
  stillProgressing: 5,
  rolledBack: 6,
  overBudget: 7,
  usage: 64,
  unreachable: 69,
  interrupted: 130,
} as const;
