/** About how a command is looked at, not about what it does. The number says whether a value follows. */
const ASIDE: Readonly<Record<string, 0 | 1>> = {
  "-o": 1,
  "--output": 1,
  "-v": 1,
  "--v": 1,
  "-y": 0,
  "--yes": 0,
  "-q": 0,
  "--quiet": 0,
  "--no-color": 0,
  "--detailed-exitcode": 0,
};

/** The command that does what these words plan: nothing of how it is shown, and quoted for a shell. */
export function commandLine(argv: readonly string[]): string {
  const kept: string[] = [];
  for (let at = 0; at < argv.length; at++) {
    const word = argv[at] as string;
    const flag = word.split("=", 1)[0] as string;
    if (flag === "--dry-run") {
      if (word === flag && /^(?:client|server)$/.test(argv[at + 1] ?? "")) at++;
    } else if (Object.hasOwn(ASIDE, flag)) {
      if (word === flag) at += ASIDE[flag] ?? 0;
    } else kept.push(word);
  }
  // The first word that is no flag, or a flag's value, is the command; `plan`, `diff` and `auth can-i` stand before it.
  const first = kept.findIndex((word) => word === "plan" || word === "diff" || word === "auth");
  const asked = kept[first] === "auth" ? 2 : 1;
  const isFirst = first >= 0 && kept.slice(0, first).every((word) => word.startsWith("-"));
  const words = isFirst ? kept.toSpliced(first, asked).filter((word) => asked === 1 || word !== "--list") : kept;
  return ["vendorctl", ...words.map(quoted)].join(" ");
}

function quoted(word: string): string {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;
}
