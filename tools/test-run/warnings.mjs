/**
 * Which of Node's warnings fail a run. All do that somebody here can mend: a leak of listeners, a promise handled too late,
 * a deprecated call of ours. Two kinds do not:
 * - ExperimentalWarning says which Node runs, not what the code did wrong; another version would fail on code that is right.
 * - DeprecationWarning from a package is for its authors. It fails nothing until the package's next release.
 * @param {Error | string} warning with its stack if there is one
 */
export function isForeign(warning) {
  const text = typeof warning === "string" ? warning : `${warning.name}: ${warning.message}\n${warning.stack}`;
  if (text.startsWith("ExperimentalWarning")) return true;
  if (!text.startsWith("DeprecationWarning")) return false;
  const caller = text.split("\n").find((line) => /^ +at /.test(line) && !/\(?node:/.test(line));
  // A child process prints no stack, so whose deprecated call it was cannot be told.
  return caller?.includes("node_modules") ?? true;
}

export function describeWarnings(warnings) {
  const plural = warnings.length === 1 ? "1 warning" : `${warnings.length} warnings`;
  return `${plural} of this process:\n${warnings.map(({ stack, name, message }) => stack ?? `${name}: ${message}`).join("\n")}`;
}
