/**
 * The message of a Degraded condition ends with what to do: conditions have no field for it. The operator writes it, `vendorctl status`
 * prints it as the next command.
 */
const FIX = "Fix: ";

export function withFix(message: string, fix: string): string {
  return `${message} ${FIX}${fix}`;
}

/** The first fix of a message, without its full stop, and without where to read on: it may be a command. */
export function fixIn(message: string | undefined): string | undefined {
  const at = message?.indexOf(` ${FIX}`) ?? -1;
  const fix =
    at < 0
      ? undefined
      : message
          ?.slice(at + FIX.length + 1)
          .replace(READ_ON, "")
          .replace(/\.$/, "");
  return fix || undefined;
}

const READ_ON = / \(vendorctl explain \w+\).*$/s;
