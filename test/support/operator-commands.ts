/** The words of the first kubectl command in a message, without `kubectl`: what somebody would copy from it and run. */
export function commandIn(message: string): string[] {
  const [, command] = /kubectl ((?:'[^']*'|[^'.]|\.(?!$| ))*)/s.exec(message) ?? [];
  if (command === undefined) throw new Error(`no command in: ${message}`);
  return [...command.matchAll(/'([^']*)'|(\S+)/g)].map(([, quoted, word]) => quoted ?? word ?? "");
}
