/**
 * The message of a Degraded condition ends with what to do: conditions have no field for it. The operator writes it, `vendorctl status`
 * prints it as the next command.
 */
const FIX = "Fix: ";

export function withFix(message: string, fix: string): string {
  return `${message} ${FIX}${fix}`;
}

/** The fix of a message, without its full stop. */
export function fixIn(message: string | undefined): string | undefined {
  const at = message?.indexOf(` ${FIX}`) ?? -1;
  const fix = at < 0 ? undefined : message?.slice(at + FIX.length + 1).replace(/\.$/, "");
  return fix || undefined;
}
